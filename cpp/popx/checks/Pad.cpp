#include "popx/checks/Pad.hpp"

#include <algorithm>

#include "poplar/exceptions.hpp"

namespace popx::padding {
namespace {

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

poplar::Tensor Plan::placeIn(const poplar::Tensor& out) const {
  poplar::Tensor placed = out;
  for (unsigned d = 0; d < kept.rank(); ++d) {
    const auto from = static_cast<std::size_t>(start[d]);
    const auto span = (kept.dim(d) - 1) * static_cast<std::size_t>(step[d]) + 1;
    placed = placed.slice(from, from + span, d);
    if (step[d] > 1) placed = placed.subSample(static_cast<unsigned>(step[d]), d);
  }
  return placed;
}

Plan planOf(const poplar::Tensor& t, const poplar::Tensor& value, const Integers& low,
            const Integers& high, const Integers& interior) {
  checkPad(t, value, low, high, interior);
  Plan plan;
  plan.kept = t;
  for (unsigned d = 0; d < t.rank(); ++d) {
    const Edge edge = edgeOf(static_cast<std::int64_t>(t.dim(d)), low[d], high[d], interior[d]);
    if (edge.size < 0) {
      throw poplar::poplar_error("[popx.pad] needs a result of no negative size; got low " +
                                 std::to_string(low[d]) + " and high " + std::to_string(high[d]) +
                                 " for dimension " + std::to_string(d) + " of " +
                                 t.shapeToString() + ". Remove fewer elements.");
    }
    plan.shape.push_back(static_cast<std::size_t>(edge.size));
    plan.kept = plan.kept.slice(static_cast<std::size_t>(edge.first),
                                static_cast<std::size_t>(edge.last), d);
    plan.start.push_back(edge.start);
    plan.step.push_back(interior[d] + 1);
  }
  return plan;
}

}  // namespace popx::padding
