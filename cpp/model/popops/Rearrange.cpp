#include "popops/Rearrange.hpp"

#include <string>

#include "engine/graph/ProgramNode.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace popops::rearrange {
namespace {

using poplar::ComputeSet;
using poplar::DebugContext;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Sequence;
using poputil::GroupingInfo;

/// Transposes in the caller's compute set.
void transposeIn(const ComputeSet& cs, const Tensor& in, const Tensor& out) {
  Sequence copy;
  copy.add(Copy(in, out));
  cs.steps()->children.push_back(copy.node());
}

/// A new tensor of t's shape whose groups of dimension `to.first` are `to.second` long.
Tensor makeGrouped(Graph& graph, const Tensor& t, const GroupingInfo& to,
                   const DebugContext& debugContext) {
  const auto [dim, size] = to;
  if (dim >= t.rank() || size == 0 || t.dim(dim) % size != 0) {
    throw poputil::poplibs_error("[popops::rearrange] needs groups that divide a dimension of " +
                                 t.shapeToString() + "; got groups of " + std::to_string(size) +
                                 " in dimension " + std::to_string(dim) + ".");
  }
  // Memory: [..., n / size, ..., size].
  auto shape = t.shape();
  shape[dim] /= size;
  shape.push_back(size);
  const Tensor memory = graph.addVariable(t.elementType(), shape, debugContext);
  poputil::mapTensorLinearly(graph, memory, 0, size);
  return memory.dimRoll(static_cast<unsigned>(t.rank()), dim + 1).flatten(dim, dim + 2);
}

/// The groups of `t`; empty if its rank is below 2.
std::vector<GroupingInfo> groupsOf(const Graph& graph, const Tensor& t) {
  return t.rank() < 2 ? std::vector<GroupingInfo>() : poputil::detectDimGroupings(graph, t);
}

bool isWanted(const Graph& graph, const Tensor& t, const GroupingInfo& to) {
  if (t.rank() < 2 || t.dim(to.first) % to.second != 0) return false;
  const auto groups = groupsOf(graph, t);
  return groups.empty() || groups[0].first != to.first || groups[0].second % to.second != 0;
}

}  // namespace

bool canUseFastTranspose(const poplar::Target& target, const poplar::Type& type, unsigned numRows,
                         unsigned numColumns, unsigned) {
  const auto bytes = target.getTypeSize(type);
  const unsigned grain = bytes == 1 ? 8 : 4;
  return bytes <= 4 && numRows % grain == 0 && numColumns % grain == 0;
}

void addTransposeVertices(
    Graph&, const ComputeSet& cs, const poplar::Type&, unsigned rows, unsigned cols,
    const Graph::TileToTensorMapping& mapping,
    std::function<std::pair<const Tensor, const Tensor>(std::size_t)> getInOut,
    const DebugContext&) {
  for (const auto& regions : mapping) {
    for (const auto& region : regions) {
      for (std::size_t i = region.begin(); i < region.end(); ++i) {
        const auto [in, out] = getInOut(i);
        transposeIn(cs, in.reshape({rows, cols}).transpose().flatten(), out);
      }
    }
  }
}

Tensor partialTranspose(Graph& graph, const Tensor& in, const ComputeSet& cs,
                        const DebugContext& debugContext) {
  const auto rank = static_cast<unsigned>(in.rank());
  if (rank < 2) {
    throw poputil::poplibs_error(
        "[popops::partialTranspose] needs a tensor of rank 2 or more; got " + in.shapeToString() +
        ".");
  }
  const Tensor transposed = in.dimRoll(rank - 1, rank - 2);
  const Tensor out = graph.addVariable(in.elementType(), transposed.shape(), debugContext);
  poputil::mapTensorLinearly(graph, out);
  transposeIn(cs, transposed, out);
  return out;
}

unsigned getMinimumRegroupGrainSize(const poplar::Type& type) {
  return type == poplar::HALF || type == poplar::FLOAT ? 4 : 8;
}

Tensor regroupTensor(Graph& graph, const Tensor& t, std::vector<Copy>& copies, const ComputeSet&,
                     const GroupingInfo&, const GroupingInfo& to,
                     const DebugContext& debugContext) {
  if (t.rank() < 2) return t;
  const Tensor out = makeGrouped(graph, t, to, {debugContext, "regroup"});
  copies.emplace_back(t, out, false, debugContext);
  return out;
}

Tensor regroupTensor(Graph& graph, const Tensor& t, Sequence& copies, const ComputeSet& transposeCS,
                     const GroupingInfo& from, const GroupingInfo& to,
                     const DebugContext& debugContext) {
  std::vector<Copy> made;
  const Tensor out = regroupTensor(graph, t, made, transposeCS, from, to, debugContext);
  for (const auto& copy : made) copies.add(copy);
  return out;
}

Tensor regroupIfPossible(Graph& graph, const Tensor& t, Sequence& prog, const GroupingInfo& to,
                         const DebugContext& debugContext) {
  if (!isWanted(graph, t, to)) return t;
  return regroupTensor(graph, t, prog, ComputeSet(), to, to, debugContext);
}

Tensor regroupIfBeneficial(Graph& graph, const Tensor& in, const Tensor& ref,
                           std::vector<Copy>& copies, ComputeSet transposeCS,
                           const DebugContext& debugContext) {
  const auto wanted = groupsOf(graph, ref);
  if (wanted.empty() || !isWanted(graph, in, wanted[0])) return in;
  return regroupTensor(graph, in, copies, transposeCS, wanted[0], wanted[0], debugContext);
}

Tensor regroupIfBeneficial(Graph& graph, const Tensor& in, const Tensor& ref, Sequence& prog,
                           const DebugContext& debugContext) {
  const auto wanted = groupsOf(graph, ref);
  return wanted.empty() ? in : regroupIfPossible(graph, in, prog, wanted[0], debugContext);
}

Tensor regroupIfBeneficial(Graph& graph, const Tensor& in, std::size_t preferredGrouping,
                           Sequence& prog, const DebugContext& debugContext) {
  if (in.rank() < 2) return in;
  return regroupIfPossible(
      graph, in, prog,
      {static_cast<unsigned>(in.rank()) - 1, static_cast<unsigned>(preferredGrouping)},
      debugContext);
}

}  // namespace popops::rearrange
