#include <algorithm>
#include <memory>

#include "engine/Errors.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/move/Copy.hpp"

namespace ipujax::engine {

namespace {

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
    // Fills before and after t in dimension d, within t's range of the dimensions before d.
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

void checkPadStep(StepCheck& check) {
  check.operands(3);
  const auto out = check.written(2);
  const auto inner = check.read(0).hasTypeOf(out).hasRank(out.rank());
  check.read(1).hasTypeOf(out).isOne();
  const auto& start = check.integers("start", out->shape.size());
  const auto& steps = check.integers("step", out->shape.size());
  for (std::size_t d = 0; d < start.size(); ++d) {
    const std::int64_t n = inner->shape[d];
    constexpr std::int64_t kMost = StepCheck::kMostElements;
    check.need(steps[d] >= 1 && steps[d] <= kMost, "steps forward");
    check.need(start[d] >= -kMost && start[d] <= kMost, "places near its output");
    const std::int64_t span = n == 0 ? 0 : (n - 1) * steps[d] + 1;
    const bool inside = start[d] >= 0 && start[d] <= out->shape[d] - span;
    check.need(inside || inner->numElements() == 0, "places inside its output");
  }
}

const RegisterKernel kPad{"popx.pad", makeKernel<PadKernel>, checkPadStep, KernelRole::kPad};

}  // namespace
}  // namespace ipujax::engine
