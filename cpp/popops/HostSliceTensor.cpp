#include "popops/HostSliceTensor.hpp"

#include "poputil/exceptions.hpp"

namespace popops {

IndicesAndTensor createHostSliceableTensor(poplar::Graph& graph, const poplar::Type& type,
                                           const std::vector<std::size_t>& shape, bool isRead,
                                           const poplar::DebugContext& debugContext) {
  if (shape.size() != 2) {
    throw poputil::poplibs_error(
        "[popops::createHostSliceableTensor] needs a shape [indices, length]; got " +
        std::to_string(shape.size()) + " dimensions. Flatten each row.");
  }
  const auto indices =
      graph.addVariable(poplar::UNSIGNED_INT, {shape[0]}, {debugContext, "indices"});
  graph.setTileMapping(indices, 0);
  return {indices,
          createHostTransferableTensor(graph, type, shape, isRead, {debugContext, "tensor"})};
}

poplar::Tensor createHostTransferableTensor(poplar::Graph& graph, const poplar::Type& type,
                                            const std::vector<std::size_t>& shape, bool,
                                            const poplar::DebugContext& debugContext) {
  return graph.addVariable(type, shape, poplar::VariableMappingMethod::LINEAR, debugContext);
}

}  // namespace popops
