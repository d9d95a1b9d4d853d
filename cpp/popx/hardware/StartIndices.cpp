#include "popx/hardware/StartIndices.hpp"

#include <numeric>

#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"

namespace popx::starts {
namespace {

using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;

/// A constant on tile 0.
Tensor constantOf(Graph& graph, const std::vector<int>& values,
                  const std::vector<std::size_t>& shape, const poplar::DebugContext& debug) {
  const Tensor t =
      graph.addConstant<int>(poplar::INT, {values.size()}, poplar::ArrayRef<int>(values), debug);
  graph.setTileMapping(t, 0);
  return t.reshape(shape);
}

/// 0, 1, 2 ... along a dimension; the index vector has one element.
Tensor counted(Graph& graph, const Tensor& like, unsigned dim, unsigned vector_dim,
               const poplar::DebugContext& debug) {
  std::vector<int> values(like.dim(dim));
  std::iota(values.begin(), values.end(), 0);
  std::vector<std::size_t> shape(like.rank(), 1);
  shape[dim] = values.size();
  Tensor t = constantOf(graph, values, shape, {debug, "batch"});
  for (unsigned d = 0; d < like.rank(); ++d)
    if (d != dim && d != vector_dim) t = t.broadcast(static_cast<unsigned>(like.dim(d)), d);
  return t.reinterpret(poplar::UNSIGNED_INT);
}

}  // namespace

Tensor wide(Graph& graph, const Tensor& indices, unsigned vector_dim, Sequence& prog,
            const poplar::DebugContext& debug) {
  const Tensor t = vector_dim == indices.rank() ? indices.expand({vector_dim}) : indices;
  const auto type = t.elementType();
  if (type == poplar::INT || type == poplar::UNSIGNED_INT || type == poplar::LONGLONG ||
      type == poplar::UNSIGNED_LONGLONG)
    return t;
  return popops::cast(graph, t, poplar::INT, prog, debug);
}

Tensor clamped(Graph& graph, const Tensor& wide, unsigned vector_dim, const std::vector<int>& most,
               Sequence& prog, const poplar::DebugContext& debug) {
  namespace pe = popops::expr;
  std::vector<std::size_t> shape(wide.rank(), 1);
  shape[vector_dim] = most.size();
  const auto likeWide = [&](const Tensor& t) {
    return popops::cast(graph, t, wide.elementType(), prog, debug);
  };
  const Tensor limits = likeWide(constantOf(graph, most, shape, {debug, "limits"}));
  const Tensor zero = likeWide(constantOf(graph, {0}, {}, {debug, "zero"}));
  return popops::map(graph, pe::Max(pe::Min(pe::_1, pe::_2), pe::_3), {wide, limits, zero}, prog,
                     debug);
}

Tensor withBatches(Graph& graph, const Tensor& clamped, unsigned vector_dim,
                   const std::vector<std::int64_t>& batching_dims, Sequence& prog,
                   const poplar::DebugContext& debug) {
  const bool is_unsigned = clamped.elementType() == poplar::UNSIGNED_INT;
  std::vector<Tensor> columns = {
      is_unsigned ? clamped : popops::cast(graph, clamped, poplar::UNSIGNED_INT, prog, debug)};
  for (const auto dim : batching_dims)
    columns.push_back(counted(graph, clamped, static_cast<unsigned>(dim), vector_dim, debug));
  return poplar::concat(columns, vector_dim);
}

}  // namespace popx::starts
