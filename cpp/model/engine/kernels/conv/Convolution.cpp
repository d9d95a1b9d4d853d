#include <array>
#include <span>
#include <vector>

#include "engine/ThreadPool.hpp"
#include "engine/blas/Arithmetic.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/conv/ConvGeometry.hpp"
#include "engine/kernels/conv/ConvPlain.hpp"
#include "engine/kernels/conv/ConvSubproblem.hpp"

/// The host kernel "poplin.convolution": operands in [N, G, Ci, spatial...], weights
/// [G, Co, Ci, kernel...], out [N, G, Co, spatial...]; attributes axes (ConvGeometry's encoding)
/// and half_partials.
namespace ipujax::engine::convolution {
namespace {

void* shifted(std::byte* base, ElementType type, std::int64_t elements) {
  return base + elements * static_cast<std::int64_t>(sizeOf(type));
}

/// A subproblem and where its operands begin, in elements.
struct Part {
  Subproblem problem;
  std::int64_t in = 0, weights = 0, out = 0;
};

/// Writes zeros to a strided view.
void clear(std::byte* data, const OperandDesc& desc, std::size_t axis) {
  const auto size = static_cast<std::int64_t>(sizeOf(desc.type));
  if (axis == desc.shape.size()) {
    std::fill(data, data + size, std::byte{0});
    return;
  }
  const bool last = axis + 1 == desc.shape.size() && desc.strides[axis] == 1;
  if (last) {
    std::fill(data, data + size * desc.shape[axis], std::byte{0});
    return;
  }
  for (std::int64_t i = 0; i < desc.shape[axis]; ++i)
    clear(data + i * desc.strides[axis] * size, desc, axis + 1);
}

class Convolution final : public Kernel {
 public:
  Convolution(const StepDesc& step, const std::vector<Axis>& axes) : out_(step.operands[2]) {
    std::vector<std::vector<Axis>> choices;
    for (const auto& axis : axes) {
      clear_ = clear_ || !axis.whole;
      choices.push_back(phases(axis));
    }
    while (choices.size() < 3) choices.insert(choices.begin(), {Axis{}});
    const std::size_t absent = 3 - axes.size();
    const bool half = step.attributes.integer("half_partials") != 0;
    for (const auto& d : choices[0])
      for (const auto& h : choices[1])
        for (const auto& w : choices[2]) addPart(step, {&d, &h, &w}, absent, half);
  }

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    if (clear_) clear(pointers[2], out_, 0);
    for (const auto& part : parts_) {
      Subproblem p = part.problem;
      p.in.data = shifted(pointers[0], p.in.type, part.in);
      p.weights.data = shifted(pointers[1], p.weights.type, part.weights);
      p.out.data = shifted(pointers[2], p.out.type, part.out);
      convolution::run(context.pool, p);
    }
  }

 private:
  void addPart(const StepDesc& step, std::array<const Axis*, 3> axes, std::size_t absent,
               bool half) {
    const auto& in = step.operands[0];
    const auto& weights = step.operands[1];
    Part part;
    Subproblem& p = part.problem;
    p.half_partials = half;
    p.batch = in.shape[0];
    p.groups = in.shape[1];
    p.in_channels = in.shape[2];
    p.out_channels = weights.shape[1];
    p.in = {nullptr, in.type, in.strides[0], in.strides[1], in.strides[2], {}};
    p.weights = {nullptr, weights.type, weights.strides[1], weights.strides[0], weights.strides[2],
                 {}};
    p.out = {nullptr, out_.type, out_.strides[0], out_.strides[1], out_.strides[2], {}};
    for (std::size_t a = 0; a < 3; ++a) {
      const Axis& axis = *axes[a];
      p.input[a] = axis.input;
      p.kernel[a] = axis.kernel;
      p.output[a] = axis.output;
      p.stride[a] = axis.stride;
      p.dilation[a] = axis.kernel_dilation;
      p.padding[a] = axis.padding;
      if (a < absent) continue;
      const std::size_t d = a - absent + 3;
      p.in.space[a] = in.strides[d] * axis.input_step;
      p.weights.space[a] = weights.strides[d] * axis.kernel_step;
      p.out.space[a] = out_.strides[d] * axis.output_step;
      part.in += in.strides[d] * axis.input_first;
      part.weights += weights.strides[d] * axis.kernel_first;
      part.out += out_.strides[d] * axis.output_first;
    }
    const bool empty = p.taps() * p.in_channels == 0 || p.input[0] * p.input[1] * p.input[2] == 0;
    if (empty) {
      clear_ = true;
    } else {
      parts_.push_back(part);
    }
  }

  OperandDesc out_;
  std::vector<Part> parts_;
  bool clear_ = false;
};

std::unique_ptr<Kernel> make(const StepDesc& step) {
  const auto transforms = decode(step.attributes.integers("axes"));
  std::vector<Axis> axes;
  for (std::size_t a = 0; a < transforms.size(); ++a)
    axes.push_back(
        normalise(transforms[a], step.operands[0].shape[a + 3], step.operands[1].shape[a + 3]));
  if (axes.size() > 3) return makePlainConvolution(step, axes);
  return std::make_unique<Convolution>(step, axes);
}

void check(StepCheck& check) {
  check.operands(3);
  check.flag("half_partials");
  const auto in = check.read(0);
  const auto weights = check.read(1).hasRank(in.rank());
  const auto out = check.written(2).hasRank(in.rank());
  check.need(in.rank() >= 3, "a batch, groups and channels");
  const bool fits = in->shape[0] == out->shape[0] && in->shape[1] == weights->shape[0] &&
                    in->shape[1] == out->shape[1] && in->shape[2] == weights->shape[2] &&
                    out->shape[2] == weights->shape[1];
  check.need(fits, "one batch, groups and channels");
  checkAxes(check, in, weights, out);
  blas::arithmeticOf(in->type, weights->type, out->type);  // throws where there is none
}

const RegisterKernel kConvolution{"poplin.convolution", make, check};

}  // namespace
}  // namespace ipujax::engine::convolution
