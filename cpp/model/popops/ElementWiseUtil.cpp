#include "popops/ElementWiseUtil.hpp"

#include <algorithm>
#include <tuple>

#include "poputil/Util.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

using poplar::Graph;
using poplar::Tensor;

/// How well an output with a tensor's layout spreads the work. Less is better, in this order.
struct Spread {
  std::size_t most_elements;    ///< on the fullest tile
  std::ptrdiff_t unused_tiles;  ///< negated number of tiles that have elements
  std::size_t num_regions;      ///< contiguous pieces of memory over all tiles

  friend bool operator<(const Spread& a, const Spread& b) {
    return std::tie(a.most_elements, a.unused_tiles, a.num_regions) <
           std::tie(b.most_elements, b.unused_tiles, b.num_regions);
  }
};

Spread spreadOf(const Graph& graph, const Tensor& t) {
  Spread spread{0, 0, 0};
  const Tensor flat = t.flatten();
  for (const auto& regions : graph.getTileMapping(flat)) {
    if (regions.empty()) continue;
    spread.most_elements =
        std::max(spread.most_elements, poputil::intervalSequenceNumElements({regions}));
    --spread.unused_tiles;
    spread.num_regions += graph.getSortedContiguousRegions(flat, regions).size();
  }
  return spread;
}

/// The inputs whose layout an output can take.
std::vector<const Tensor*> candidates(const std::vector<Tensor>& inputs) {
  std::vector<const Tensor*> found;
  for (const Tensor& input : inputs) {
    if (input.shape() != inputs[0].shape())
      throw poputil::poplibs_error(
          "[popops::createOutputForElementWiseOp] needs inputs of one shape; got " +
          inputs[0].shapeToString() + " and " + input.shapeToString() + ". Broadcast them.");
    if (input.isParallelWriteable()) found.push_back(&input);
  }
  return found;
}

}  // namespace

Tensor createOutputForElementWiseOp(Graph& graph, const std::vector<Tensor>& inputs,
                                    const poplar::Type& outputType,
                                    const poplar::DebugContext& debugContext) {
  if (inputs.empty())
    throw poputil::poplibs_error(
        "[popops::createOutputForElementWiseOp] needs an input; got none.");
  const auto found = candidates(inputs);
  if (found.empty())
    return graph.addVariable(outputType, inputs[0].shape(), poplar::VariableMappingMethod::LINEAR,
                             debugContext);
  const Tensor* best = found[0];
  if (found.size() > 1) {
    Spread least = spreadOf(graph, *best);
    for (std::size_t i = 1; i < found.size(); ++i) {
      const Spread spread = spreadOf(graph, *found[i]);
      if (!(spread < least)) continue;
      best = found[i];
      least = spread;
    }
  }
  return graph.clone(outputType, *best, debugContext,
                     poplar::TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES);
}

}  // namespace popops
