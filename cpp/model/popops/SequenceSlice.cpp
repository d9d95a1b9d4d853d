#include "popops/SequenceSlice.hpp"

#include <cmath>
#include <string>

#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

void check(const poplar::Tensor& in, const poplar::Tensor& out, const poplar::Tensor& n,
           const poplar::Tensor& in_offset, const poplar::Tensor& out_offset) {
  const bool are_rows = in.rank() >= 2 && out.rank() >= 2 &&
                        in.elementType() == out.elementType() &&
                        in[0].numElements() == out[0].numElements();
  bool are_runs = true;
  for (const auto& t : {n, in_offset, out_offset}) {
    are_runs = are_runs && t.rank() == 1 && t.dim(0) == n.dim(0) &&
               t.elementType() == poplar::UNSIGNED_INT;
  }
  if (are_rows && are_runs) return;
  throw poputil::poplibs_error(
      "[popops::sequenceSlice] needs tensors of rank 2 or more with rows of one size and type, and "
      "three tensors [n] of UNSIGNED_INT; got " +
      in.shapeToString() + ", " + out.shapeToString() + ", " + n.shapeToString() + ", " +
      in_offset.shapeToString() + " and " + out_offset.shapeToString() + ". Reshape or cast them.");
}

/// As popops places it: the columns of the larger tensor are spread over the tiles, each with all
/// of its rows. The other tensor's columns move there, and the result moves back. A supervisor
/// starts a worker for each run, which moves a word in two cycles (popops: SequenceSlice and
/// SequenceSliceCopy). They have no estimator, so 40 and 20 cycles per run are our estimates.
ipujax::engine::Cost costOf(const poplar::Graph& graph, const poplar::Tensor& in,
                            const poplar::Tensor& out, double runs, bool zeroes) {
  ipujax::engine::Cost cost;
  const auto& target = graph.getTarget();
  const std::size_t columns = in.dim(1);
  if (columns == 0 || out.dim(0) == 0) return cost;
  const double bytes = static_cast<double>(target.getTypeSize(in.elementType()));
  const std::size_t grain = bytes < 4 ? 2 : 1;  // words are stored whole
  const std::size_t region =
      grain *
      ipujax::engine::ceilDiv(ipujax::engine::ceilDiv(columns, grain), target.getNumTiles());
  const std::size_t tiles = ipujax::engine::ceilDiv(columns, region);
  const auto words = [&](std::size_t rows) {
    return std::ceil(bytes * static_cast<double>(region * rows) / 4);
  };
  const auto moved = [&](double rows_words) {
    addExchange(cost, target, {4 * rows_words * static_cast<double>(tiles), 4 * rows_words});
  };
  moved(words(in.dim(0)) + 3 * runs);
  if (zeroes)
    addComputeSet(cost, target, 11 + 6 * (4 + words(out.dim(0)) / 12), tiles);
  else
    moved(words(out.dim(0)));
  addComputeSet(cost, target,
                11 + 40 * runs + 6 * (20 * std::ceil(runs / 6) + 2 * words(out.dim(0)) / 6), tiles);
  addExchange(
      cost, target,
      ipujax::engine::Exchange{4 * words(out.dim(0)) * static_cast<double>(tiles),
                               4 * std::ceil(words(out.dim(0)) * static_cast<double>(tiles) /
                                             static_cast<double>(target.getNumTiles())),
                               4 * words(out.dim(0))});
  cost.temporary_bytes =
      static_cast<std::uint64_t>(4 * (words(in.dim(0)) + words(out.dim(0)) + 3 * runs));
  cost.vertex_state_bytes = 44;
  cost.code_bytes = 400;
  return cost;
}

}  // namespace

void sequenceSlice(poplar::Graph& graph, const poplar::Tensor& tIn, const poplar::Tensor& tOut,
                   const poplar::Tensor& tN, const poplar::Tensor& tInOffset,
                   const poplar::Tensor& tOutOffset, bool zeroUnused,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  check(tIn, tOut, tN, tInOffset, tOutOffset);
  const auto in = tIn.flatten(1, tIn.rank()), out = tOut.flatten(1, tOut.rank());
  using ipujax::engine::Access;
  ipujax::engine::StepSpec step;
  step.kernel = "popops.sequence_slice";
  step.operands = {{in, Access::kRead, true},
                   {tN, Access::kRead},
                   {tInOffset, Access::kRead},
                   {tOutOffset, Access::kRead},
                   {out, zeroUnused ? Access::kWrite : Access::kReadWrite, true}};
  step.attributes.set("zero_unused", std::int64_t{zeroUnused});
  step.cost = costOf(graph, in, out, static_cast<double>(tN.dim(0)), zeroUnused);
  ipujax::engine::emit(graph, prog, std::move(step), {debugContext, "sequenceSlice"});
}

}  // namespace popops
