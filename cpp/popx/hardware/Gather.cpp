#include "popx/Gather.hpp"

#include <algorithm>
#include <numeric>

#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Gather.hpp"

namespace popx {
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

/// Indices along one dimension of `like`: 0, 1, 2 ..., where the index vector has one element.
Tensor counted(Graph& graph, const Tensor& like, unsigned dim, unsigned index_vector_dim,
               const poplar::DebugContext& debug) {
  std::vector<int> values(like.dim(dim));
  std::iota(values.begin(), values.end(), 0);
  std::vector<std::size_t> shape(like.rank(), 1);
  shape[dim] = values.size();
  Tensor t = constantOf(graph, values, shape, {debug, "batch"});
  for (unsigned d = 0; d < like.rank(); ++d)
    if (d != dim && d != index_vector_dim) t = t.broadcast(static_cast<unsigned>(like.dim(d)), d);
  return t;
}

/// The type of 32 bits or more in which indices are compared.
poplar::Type comparedType(const poplar::Type& type) {
  if (type == poplar::UNSIGNED_INT || type == poplar::LONGLONG ||
      type == poplar::UNSIGNED_LONGLONG)
    return type;
  return poplar::INT;
}

/// Start indices as popops::gather takes them: inside the operand, UNSIGNED_INT.
Tensor clamped(Graph& graph, const Tensor& starts, const Tensor& operand, const GatherDims& dims,
               Sequence& prog, const poplar::DebugContext& debug) {
  namespace pe = popops::expr;
  std::vector<int> most;
  for (const auto d : dims.start_index_map) {
    const auto dim = static_cast<std::size_t>(d);
    most.push_back(static_cast<int>(operand.dim(static_cast<unsigned>(dim))) -
                   static_cast<int>(dims.slice_sizes.at(dim)));
  }
  std::vector<std::size_t> shape(starts.rank(), 1);
  shape[static_cast<std::size_t>(dims.index_vector_dim)] = most.size();
  const auto type = comparedType(starts.elementType());
  const Tensor wide =
      starts.elementType() == type ? starts : popops::cast(graph, starts, type, prog, debug);
  const Tensor limits =
      popops::cast(graph, constantOf(graph, most, shape, {debug, "limits"}), type, prog, debug);
  const Tensor zero =
      popops::cast(graph, constantOf(graph, {0}, {}, {debug, "zero"}), type, prog, debug);
  const Tensor inside =
      popops::map(graph, pe::Max(pe::Min(pe::_1, pe::_2), pe::_3), {wide, limits, zero}, prog, debug);
  if (type == poplar::UNSIGNED_INT) return inside;
  return popops::cast(graph, inside, poplar::UNSIGNED_INT, prog, debug);
}

}  // namespace

Tensor gather(Graph& graph, const Tensor& operand, const Tensor& indices, const GatherDims& dims,
              Sequence& prog, const poplar::DebugContext& debugContext) {
  const auto vector_dim = static_cast<unsigned>(dims.index_vector_dim);
  Tensor starts = vector_dim == indices.rank() ? indices.expand({vector_dim}) : indices;
  starts = clamped(graph, starts, operand, dims, prog, debugContext);
  std::vector<Tensor> columns = {starts};
  auto collapsed = dims.collapsed_slice_dims;
  auto map = dims.start_index_map;
  for (std::size_t b = 0; b < dims.operand_batching_dims.size(); ++b) {
    const auto along = static_cast<unsigned>(dims.start_indices_batching_dims[b]);
    const Tensor column = counted(graph, starts, along, vector_dim, debugContext);
    columns.push_back(column.reinterpret(poplar::UNSIGNED_INT));
    map.push_back(dims.operand_batching_dims[b]);
    collapsed.push_back(dims.operand_batching_dims[b]);
  }
  std::ranges::sort(collapsed);
  const auto sizes = [](const std::vector<std::int64_t>& v) {
    return std::vector<std::size_t>(v.begin(), v.end());
  };
  return popops::gather(graph, operand, poplar::concat(columns, vector_dim), vector_dim,
                        sizes(dims.offset_dims), sizes(dims.slice_sizes), sizes(collapsed),
                        std::vector<unsigned>(map.begin(), map.end()), prog, debugContext);
}

}  // namespace popx
