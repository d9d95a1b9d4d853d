#include "popx/Pad.hpp"

#include <algorithm>
#include <memory>

#include "engine/Emit.hpp"
#include "engine/Kernel.hpp"
#include "engine/Planning.hpp"
#include "engine/kernels/Copy.hpp"
#include "poplar/exceptions.hpp"
#include "poputil/TileMapping.hpp"

namespace popx {
namespace {

using ipujax::engine::Access;
using ipujax::engine::Cost;
using ipujax::engine::Kernel;
using ipujax::engine::RunContext;
using ipujax::engine::StepDesc;
using ipujax::engine::StridedCopy;

using Integers = std::vector<std::int64_t>;

/// Operands: t (read), value (read, one element), out (write). Element i of dimension d goes to
/// "start"[d] + i * "step"[d]. Without interior padding only the edges are filled.
class PadKernel final : public Kernel {
 public:
  explicit PadKernel(const StepDesc& step)
      : bytes_(sizeOf(step.operands[2].type)),
        strides_(step.operands[2].strides),
        copy_(bytes_, step.operands[0].shape, step.operands[0].strides, targetStrides(step)) {
    const auto& start = step.attributes.integers("start");
    const auto& steps = step.attributes.integers("step");
    const auto& shape = step.operands[2].shape;
    const auto& inner = step.operands[0].shape;
    const bool dense =
        copy_.bytes() > 0 && std::all_of(steps.begin(), steps.end(), [](auto s) { return s == 1; });
    if (!dense) addFill(shape, 0);
    // What lies before and behind t in dimension d, within t's range of the dimensions before d.
    Integers box = shape;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t end = start[d] + inner[d];
      if (dense) {
        box[d] = start[d];
        addFill(box, offset_);
        box[d] = shape[d] - end;
        addFill(box, offset_ + end * strides_[d]);
        box[d] = inner[d];
      }
      offset_ += start[d] * strides_[d];
    }
  }

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    for (const auto& [fill, offset] : fills_) fill.run(context.pool, p[1], p[2] + at(offset));
    if (copy_.bytes() > 0) copy_.run(context.pool, p[0], p[2] + at(offset_));
  }

 private:
  std::int64_t at(std::int64_t element) const {
    return element * static_cast<std::int64_t>(bytes_);
  }
  void addFill(const Integers& shape, std::int64_t offset) {
    StridedCopy fill(bytes_, shape, Integers(shape.size(), 0), strides_);
    if (fill.bytes() > 0) fills_.emplace_back(std::move(fill), offset);
  }
  static Integers targetStrides(const StepDesc& step) {
    Integers strides = step.operands[2].strides;
    const auto& steps = step.attributes.integers("step");
    for (std::size_t d = 0; d < strides.size(); ++d) strides[d] *= steps.at(d);
    return strides;
  }

  std::size_t bytes_;
  Integers strides_;
  StridedCopy copy_;
  std::vector<std::pair<StridedCopy, std::int64_t>> fills_;
  std::int64_t offset_ = 0;  ///< of t's first element, in elements
};

std::unique_ptr<Kernel> makePad(const StepDesc& step) { return std::make_unique<PadKernel>(step); }

void checkPadStep(ipujax::engine::StepCheck& check) {
  check.operands(3);
  const auto out = check.written(2);
  const auto inner = check.read(0).hasTypeOf(out).hasRank(out.rank());
  check.read(1).hasTypeOf(out).isOne();
  const auto& start = check.integers("start", out->shape.size());
  const auto& steps = check.integers("step", out->shape.size());
  for (std::size_t d = 0; d < start.size(); ++d) {
    const std::int64_t n = inner->shape[d];
    constexpr std::int64_t kMost = ipujax::engine::StepCheck::kMostElements;
    check.need(steps[d] >= 1 && steps[d] <= kMost, "steps forward");
    check.need(start[d] >= -kMost && start[d] <= kMost, "places near its output");
    const std::int64_t span = n == 0 ? 0 : (n - 1) * steps[d] + 1;
    const bool inside = start[d] >= 0 && start[d] <= out->shape[d] - span;
    check.need(inside || inner->numElements() == 0, "places inside its output");
  }
}

const ipujax::engine::RegisterKernel kPad{"popx.pad", makePad, checkPadStep};

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
  const auto placed = ipujax::engine::placementOf(graph, out);
  if (placed.elements == 0) return cost;
  const auto bytes = target.getTypeSize(out.elementType());
  const auto each = ipujax::engine::ceilDiv(placed.max_elements_per_tile * bytes,
                                            8 * target.getNumWorkerContexts());
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
      t.shapeToString() + " and value " + value.shapeToString() + ".");
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
                                 t.shapeToString() + ".");
    }
    shape.push_back(static_cast<std::size_t>(edge.size));
    kept = kept.slice(static_cast<std::size_t>(edge.first), static_cast<std::size_t>(edge.last), d);
    start.push_back(edge.start);
    step.push_back(interior[d] + 1);
  }
  if (kept.shape() == shape) return kept;

  const auto out = graph.addVariable(t.elementType(), shape, debugContext);
  poputil::mapTensorLinearly(graph, out);
  ipujax::engine::StepSpec spec;
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
    spec.cost += ipujax::engine::copyCost(graph, kept, placed);
  }
  ipujax::engine::emit(graph, prog, std::move(spec), debugContext);
  return out;
}

}  // namespace popx
