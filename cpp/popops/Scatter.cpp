#include "popops/Scatter.hpp"

#include "popops/internal/Scatter.hpp"

namespace popops {

void scatter(poplar::Graph& graph, const poplar::Tensor& operand, const poplar::Tensor& indices,
             const poplar::Tensor& updates, std::size_t indexVectorDim,
             std::vector<unsigned> updateWindowDims, std::vector<std::size_t> insertWindowDims,
             std::vector<unsigned> scatterDimsToOperandDims, poplar::program::Sequence& prog,
             const poplar::DebugContext& debugContext, const poplar::OptionFlags& /*optionFlags*/) {
  internal::ScatterDims dims;
  dims.index_vector_dim = static_cast<std::int64_t>(indexVectorDim);
  dims.update_window_dims.assign(updateWindowDims.begin(), updateWindowDims.end());
  dims.inserted_window_dims.assign(insertWindowDims.begin(), insertWindowDims.end());
  dims.scatter_dims_to_operand_dims.assign(scatterDimsToOperandDims.begin(),
                                           scatterDimsToOperandDims.end());
  internal::scatter(graph, {operand}, indices, {updates}, dims, "replace", prog, debugContext);
}

}  // namespace popops
