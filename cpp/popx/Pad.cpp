#include "popx/Pad.hpp"

#include <algorithm>

#include "poplar/exceptions.hpp"

namespace popx {
namespace {

using native::Access;
using native::Cost;
using Integers = std::vector<std::int64_t>;

/// Where one dimension's elements [first, last) of t go in the result.
struct Edge {
  std::int64_t size = 0, first = 0, last = 0, start = 0;
};

Edge edgeOf(std::int64_t n, std::int64_t low, std::int64_t high, std::int64_t interior) {
  const std::int64_t step = interior + 1;
  Edge edge;
  edge.size = low + high + (n > 0 ? (n - 1) * step + 1 : 0);
  if (edge.size < 0) return edge;
  edge.first = low < 0 ? std::min(n, (-low + step - 1) / step) : 0;
  const std::int64_t room = edge.size - low;  // positions from element 0's place to the end
  edge.last = std::max(edge.first, std::min(n, room > 0 ? (room + step - 1) / step : 0));
  edge.start = low + edge.first * step;
  return edge;
}

Cost fillCost(const poplar::Graph& graph, const poplar::Tensor& out) {
  Cost cost;
  const auto& target = graph.getTarget();
  const auto placed = native::placementOf(graph, out);
  if (placed.elements == 0) return cost;
  const auto bytes = target.getTypeSize(out.elementType());
  const auto each =
      native::ceilDiv(placed.max_elements_per_tile * bytes, 8 * target.getNumWorkerContexts());
  // popops: popopsCycleEstimators.cpp, Fill: 26 and one cycle for each 64-bit vector of a worker.
  addComputeSet(cost, target, 6.0 * (26 + static_cast<double>(each)), placed.tiles_used);
  cost.vertex_state_bytes = 12;
  cost.code_bytes = 150;
  return cost;
}

void checkPad(const poplar::Tensor& t, const poplar::Tensor& value, const Integers& low,
              const Integers& high, const Integers& interior) {
  const bool ranks =
      low.size() == t.rank() && high.size() == t.rank() && interior.size() == t.rank();
  const bool typed = value.numElements() == 1 && value.elementType() == t.elementType();
  const bool spaced = std::all_of(interior.begin(), interior.end(), [](auto i) { return i >= 0; });
  if (ranks && typed && spaced) return;
  throw poplar::poplar_error(
      "[popx.pad] needs low, high and interior (not negative) for each dimension and one value of "
      "t's type; got t " +
      t.shapeToString() + " and value " + value.shapeToString() +
      ". Pass one of each for every dimension.");
}

}  // namespace

poplar::Tensor pad(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& value,
                   const Integers& low, const Integers& high, const Integers& interior,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  checkPad(t, value, low, high, interior);
  poplar::Tensor kept = t;
  std::vector<std::size_t> shape;
  Integers start, step;
  for (unsigned d = 0; d < t.rank(); ++d) {
    const Edge edge = edgeOf(static_cast<std::int64_t>(t.dim(d)), low[d], high[d], interior[d]);
    if (edge.size < 0) {
      throw poplar::poplar_error("[popx.pad] needs a result of no negative size; got low " +
                                 std::to_string(low[d]) + " and high " + std::to_string(high[d]) +
                                 " for dimension " + std::to_string(d) + " of " +
                                 t.shapeToString() + ". Remove fewer elements.");
    }
    shape.push_back(static_cast<std::size_t>(edge.size));
    kept = kept.slice(static_cast<std::size_t>(edge.first), static_cast<std::size_t>(edge.last), d);
    start.push_back(edge.start);
    step.push_back(interior[d] + 1);
  }
  if (kept.shape() == shape) return kept;

  const auto out = graph.addVariable(t.elementType(), shape, poplar::VariableMappingMethod::LINEAR,
                                     debugContext);
  native::StepSpec spec;
  spec.kernel = "popx.pad";
  spec.operands = {
      {kept, Access::kRead}, {value.reshape({}), Access::kRead}, {out, Access::kWrite}};
  spec.attributes.set("start", start).set("step", step);
  spec.cost = fillCost(graph, out);
  if (kept.numElements() > 0) {
    poplar::Tensor placed = out;
    for (unsigned d = 0; d < t.rank(); ++d) {
      const auto from = static_cast<std::size_t>(start[d]);
      const auto span = (kept.dim(d) - 1) * static_cast<std::size_t>(step[d]) + 1;
      placed = placed.slice(from, from + span, d);
      if (step[d] > 1) placed = placed.subSample(static_cast<unsigned>(step[d]), d);
    }
    spec.cost += native::copyCost(graph, kept, placed);
  }
  native::emit(graph, prog, std::move(spec), debugContext);
  return out;
}

}  // namespace popx
