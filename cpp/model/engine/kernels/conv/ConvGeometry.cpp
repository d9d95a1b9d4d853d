#include "engine/kernels/conv/ConvGeometry.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "engine/Errors.hpp"

namespace ipujax::engine::convolution {
namespace {

std::int64_t floorMod(std::int64_t a, std::int64_t b) { return ((a % b) + b) % b; }

struct Folded {
  std::int64_t size, padded, padding_lower, first, step;
};

/// Truncation and flip become a view; dilation and padding stay.
Folded fold(const AxisTransform::Side& side, std::int64_t size) {
  const std::int64_t kept = size - side.truncation_lower - side.truncation_upper;
  if (kept < 0)
    throw poplar_error("[poplin::convolution] needs truncation within the dimension; got " +
                       std::to_string(side.truncation_lower) + " + " +
                       std::to_string(side.truncation_upper) + " of " + std::to_string(size) +
                       ". Truncate less.");
  const std::int64_t dilated = kept == 0 ? 0 : (kept - 1) * side.dilation + 1;
  Folded f{};
  f.size = kept;
  f.padded = dilated + side.padding_lower + side.padding_upper;
  f.padding_lower = side.flip ? side.padding_upper : side.padding_lower;
  f.first = side.flip ? side.truncation_lower + kept - 1 : side.truncation_lower;
  f.step = side.flip ? -1 : 1;
  return f;
}

std::int64_t kept(const AxisTransform::Output& out, std::int64_t full) {
  const std::int64_t left = full - out.truncation_lower - out.truncation_upper;
  return left <= 0 ? 0 : (left + out.stride - 1) / out.stride;
}

}  // namespace

Attributes::Integers encode(const std::vector<AxisTransform>& axes) {
  Attributes::Integers out;
  for (const auto& axis : axes) {
    for (const auto* side : {&axis.input, &axis.kernel})
      out.insert(out.end(), {side->truncation_lower, side->truncation_upper, side->dilation,
                             side->padding_lower, side->padding_upper, side->flip ? 1 : 0});
    const auto& o = axis.output;
    out.insert(out.end(), {o.truncation_lower, o.truncation_upper, o.stride, o.padding_lower,
                           o.padding_upper});
  }
  return out;
}

std::vector<AxisTransform> decode(const Attributes::Integers& integers) {
  std::vector<AxisTransform> axes(integers.size() / kIntegersPerAxis);
  const std::int64_t* p = integers.data();
  for (auto& axis : axes) {
    for (auto* side : {&axis.input, &axis.kernel}) {
      *side = {p[0], p[1], p[2], p[3], p[4], p[5] != 0};
      p += 6;
    }
    axis.output = {p[0], p[1], p[2], p[3], p[4]};
    p += 5;
  }
  return axes;
}

void checkAxes(const StepCheck& check, const OperandCheck& in, const OperandCheck& weights,
               const OperandCheck& out) {
  constexpr std::int64_t kMost = StepCheck::kMostElements;
  const auto isSize = [&](std::int64_t n) { return n >= 0 && n <= kMost; };
  const std::size_t num_axes = in->shape.size() - 3;
  const auto& integers = check.integers("axes", num_axes * kIntegersPerAxis);
  check.need(std::ranges::all_of(integers, isSize), "truncations, dilations and paddings");
  const auto transforms = decode(integers);
  for (std::size_t a = 0; a < num_axes; ++a) {
    const AxisTransform& t = transforms[a];
    check.need(t.input.dilation > 0 && t.kernel.dilation > 0 && t.output.stride > 0,
               "strides and dilations of 1 or more");
    const std::size_t d = a + 3;
    check.need(out->shape[d] == outputSize(t, in->shape[d], weights->shape[d]),
               "outputs that its transforms give");
    // The kernels count along the padded extents and keep them in memory.
    const Folded folded = fold(t.input, in->shape[d]);
    const Folded kernel = fold(t.kernel, weights->shape[d]);
    check.need(folded.padded <= kMost && kernel.padded <= kMost, "less padding and dilation");
  }
}

Axis normalise(const AxisTransform& transform, std::int64_t input_size, std::int64_t kernel_size) {
  const Folded in = fold(transform.input, input_size);
  const Folded ker = fold(transform.kernel, kernel_size);
  const auto& out = transform.output;
  Axis axis;
  axis.input = in.size;
  axis.kernel = ker.size;
  axis.output = kept(out, in.padded - ker.padded + 1);
  axis.stride = out.stride;
  axis.kernel_dilation = transform.kernel.dilation;
  axis.input_dilation = transform.input.dilation;
  axis.padding = in.padding_lower - ker.padding_lower - out.truncation_lower;
  axis.input_first = in.first;
  axis.input_step = in.step;
  axis.kernel_first = ker.first;
  axis.kernel_step = ker.step;
  axis.output_first = out.padding_lower;
  axis.whole = out.padding_lower == 0 && out.padding_upper == 0;
  return axis;
}

std::int64_t outputSize(const AxisTransform& transform, std::int64_t input_size,
                        std::int64_t kernel_size) {
  const auto& out = transform.output;
  return normalise(transform, input_size, kernel_size).output + out.padding_lower +
         out.padding_upper;
}

std::vector<Axis> phases(const Axis& axis) {
  if (axis.input_dilation == 1) return {axis};
  const std::int64_t dilation = axis.input_dilation;
  const std::int64_t out_period = dilation / std::gcd(axis.stride, dilation);
  const std::int64_t ker_period = dilation / std::gcd(axis.kernel_dilation, dilation);
  std::vector<Axis> result;
  for (std::int64_t r = 0; r < std::min(out_period, axis.output); ++r) {
    std::int64_t k0 = 0;
    const auto at = [&](std::int64_t k) {
      return r * axis.stride + k * axis.kernel_dilation - axis.padding;
    };
    while (k0 < std::min(ker_period, axis.kernel) && floorMod(at(k0), dilation) != 0) ++k0;
    Axis phase = axis;
    phase.output = (axis.output - r + out_period - 1) / out_period;
    phase.output_first = axis.output_first + r * axis.output_step;
    phase.output_step = axis.output_step * out_period;
    phase.input_dilation = 1;
    phase.whole = false;
    if (k0 >= ker_period || k0 >= axis.kernel) {
      phase.kernel = 0;
    } else {
      phase.kernel = (axis.kernel - k0 + ker_period - 1) / ker_period;
      phase.kernel_first = axis.kernel_first + k0 * axis.kernel_step;
      phase.kernel_step = axis.kernel_step * ker_period;
      phase.stride = axis.stride * out_period / dilation;
      phase.kernel_dilation = axis.kernel_dilation * ker_period / dilation;
      phase.padding = -at(k0) / dilation;
    }
    result.push_back(phase);
  }
  return result;
}

}  // namespace ipujax::engine::convolution
