#include "popx/Random.hpp"

#include <algorithm>

#include "poputil/TileMapping.hpp"
#include "popx/Native.hpp"
#include "popx/checks/Random.hpp"

namespace popx {
namespace {

using native::Access;
using native::ceilDiv;
using native::Cost;

Cost bitsCost(const poplar::Graph& graph, const poplar::Tensor& bits, bool threefry) {
  Cost cost;
  const auto& target = graph.getTarget();
  const auto placed = native::placementOf(graph, bits);
  if (placed.elements == 0) return cost;
  const std::uint64_t words =
      std::max<std::uint64_t>(1, target.getTypeSize(bits.elementType()) / 4);
  const std::uint64_t each =
      ceilDiv(placed.max_elements_per_tile * words, target.getNumWorkerContexts());
  // Instructions of the algorithms, no multiply-high on the IPU (an estimate): threefry 20 rounds
  // of 5 and 6 key additions of 2; philox 10 rounds of 2 wide products of 10 and 6 more.
  const double cycles = threefry ? 125.0 * static_cast<double>(ceilDiv(each, 2))
                                 : 270.0 * static_cast<double>(ceilDiv(each, 4));
  addExchange(cost, target, {16.0 * static_cast<double>(placed.tiles_used), 16.0});
  addComputeSet(cost, target, 11 + 6 * (30 + cycles), placed.tiles_used);
  cost.vertex_state_bytes = 24;
  cost.code_bytes = 800;
  return cost;
}

}  // namespace

std::pair<poplar::Tensor, poplar::Tensor> rngBitGenerator(
    poplar::Graph& graph, const poplar::Tensor& state, const std::string& algorithm,
    const std::vector<std::size_t>& shape, const poplar::Type& type,
    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  const auto [threefry, bytes] = random::check(graph, state, algorithm, type);
  const auto next = graph.addVariable(state.elementType(), state.shape(), {debugContext, "state"});
  const auto bits = graph.addVariable(type, shape, {debugContext, "bits"});
  poputil::mapTensorLinearly(graph, next);
  poputil::mapTensorLinearly(graph, bits);
  native::StepSpec step;
  step.kernel = threefry ? "popx.rng_threefry" : "popx.rng_philox";
  step.operands = {
      {state, Access::kRead, true}, {next, Access::kWrite, true}, {bits, Access::kWrite, true}};
  step.attributes.set("state_bytes", static_cast<std::int64_t>(bytes));
  step.cost = bitsCost(graph, bits, threefry);
  native::emit(graph, prog, std::move(step), debugContext);
  return {next, bits};
}

}  // namespace popx
