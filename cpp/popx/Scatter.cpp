#include "popx/Scatter.hpp"

#include "popx/Native.hpp"

namespace popx {
namespace {

popops::internal::ScatterDims same(const ScatterDims& dims) {
  return {dims.update_window_dims,
          dims.inserted_window_dims,
          dims.input_batching_dims,
          dims.scatter_indices_batching_dims,
          dims.scatter_dims_to_operand_dims,
          dims.index_vector_dim,
          dims.unique_indices,
          dims.indices_are_sorted};
}

}  // namespace

void scatter(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
             const poplar::Tensor& indices, const std::vector<poplar::Tensor>& updates,
             const ScatterDims& dims, const std::vector<popops::expr::Expr>& body,
             poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  popops::internal::scatter(graph, operands, indices, updates, same(dims), body, prog,
                            debugContext);
}

void scatter(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
             const poplar::Tensor& indices, const std::vector<poplar::Tensor>& updates,
             const ScatterDims& dims, const std::string& body, poplar::program::Sequence& prog,
             const poplar::DebugContext& debugContext) {
  popops::internal::scatter(graph, operands, indices, updates, same(dims), body, prog,
                            debugContext);
}

}  // namespace popx
