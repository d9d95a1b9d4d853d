#include "popx/Dropout.hpp"

#include <algorithm>

#include "popx/Native.hpp"
#include "popx/checks/Dropout.hpp"

namespace popx {
namespace {

using native::Access;
using native::ceilDiv;
using native::Cost;

/// The cost on tiles: the whole mask in halves, four to a vector (poprand: bernoulli, 4 + vectors),
/// a slice that leaves its tiles, and one selection for each element of the block.
Cost costOf(const poplar::Graph& graph, const poplar::Tensor& out,
            const std::vector<std::size_t>& mask) {
  Cost cost;
  const auto& target = graph.getTarget();
  const auto placed = native::placementOf(graph, out);
  if (placed.elements == 0) return cost;
  std::uint64_t elements = 1;
  for (const std::size_t size : mask) elements *= size;
  const std::uint64_t tiles = std::min<std::uint64_t>(target.getNumTiles(), elements);
  const std::uint64_t workers = target.getNumWorkerContexts();
  const auto vectors = static_cast<double>(ceilDiv(ceilDiv(elements, tiles), 4 * workers));
  addExchange(cost, target, {8.0 * static_cast<double>(tiles), 8.0});
  addComputeSet(cost, target, 14 + 162, static_cast<std::uint32_t>(tiles));  // set the seed
  addComputeSet(cost, target, 11 + 6 * (4 + vectors), static_cast<std::uint32_t>(tiles));
  addExchange(cost, target,
              {2.0 * static_cast<double>(placed.elements),
               2.0 * static_cast<double>(placed.max_elements_per_tile)});
  const auto each = static_cast<double>(ceilDiv(placed.max_elements_per_tile, workers));
  addComputeSet(cost, target, 11 + 6 * (20 + 4 * each), placed.tiles_used);
  cost.vertex_state_bytes = 24;
  cost.code_bytes = 400;
  return cost;
}

}  // namespace

poplar::Tensor dropoutBlock(poplar::Graph& graph, const poplar::Tensor& seed,
                            const poplar::Tensor& input, const poplar::Tensor& starts,
                            const std::vector<std::size_t>& maskShape, double keepProbability,
                            double scale, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext) {
  dropout::check(seed, input, starts, maskShape, keepProbability);
  const poplar::Tensor out = graph.clone(input.elementType(), input, {debugContext, "dropout"});
  native::StepSpec step;
  step.kernel = "popx.dropout_block";
  step.operands = {{seed.flatten(), Access::kRead, true},
                   {out, Access::kWrite, true},
                   {input, Access::kRead, true},
                   {starts, Access::kRead, true}};
  step.attributes.set("modifier", std::int64_t{0})
      .set("keep", keepProbability)
      .set("scale", scale)
      .set("mask_shape", std::vector<std::int64_t>(maskShape.begin(), maskShape.end()));
  step.cost = costOf(graph, out, maskShape);
  step.in_place = {{2, 1}};
  native::emit(graph, prog, std::move(step), debugContext);
  return out;
}

}  // namespace popx
