#include "popops/ElementWiseUtil.hpp"

#include <algorithm>

#include "poputil/TileMapping.hpp"
#include "poputil/Util.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

std::size_t onFullestTile(const poplar::Graph::TileToTensorMapping& mapping) {
  std::size_t most = 0;
  for (const auto& regions : mapping)
    most = std::max(most, poputil::intervalSequenceNumElements({regions}));
  return most;
}

}  // namespace

poplar::Tensor createOutputForElementWiseOp(poplar::Graph& graph,
                                            const std::vector<poplar::Tensor>& inputs,
                                            const poplar::Type& outputType,
                                            const poplar::DebugContext& debugContext) {
  if (inputs.empty())
    throw poputil::poplibs_error(
        "[popops::createOutputForElementWiseOp] needs an input; got none.");
  const auto out = graph.addVariable(outputType, inputs[0].shape(), debugContext);
  poplar::Graph::TileToTensorMapping best;
  for (const auto& input : inputs) {
    if (input.shape() != out.shape()) {
      throw poputil::poplibs_error(
          "[popops::createOutputForElementWiseOp] needs inputs of one shape; got " +
          out.shapeToString() + " and " + input.shapeToString() + ". Broadcast them.");
    }
    auto mapping = graph.getTileMapping(input);
    if (best.empty() || onFullestTile(mapping) < onFullestTile(best)) best = std::move(mapping);
  }
  graph.setTileMapping(out, best);
  return out;
}

}  // namespace popops
