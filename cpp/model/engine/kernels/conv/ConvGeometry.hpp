#pragma once
#include <cstdint>
#include <vector>

#include "engine/image/Step.hpp"
#include "engine/image/StepCheck.hpp"

/// The elements that a convolution touches along each spatial axis, once its transforms are folded
/// into views.
namespace ipujax::engine::convolution {

/// The transforms of one axis as poplin::ConvParams states them.
struct AxisTransform {
  struct Side {
    std::int64_t truncation_lower = 0, truncation_upper = 0, dilation = 1;
    std::int64_t padding_lower = 0, padding_upper = 0;
    bool flip = false;
  };
  Side input, kernel;
  struct Output {
    std::int64_t truncation_lower = 0, truncation_upper = 0, stride = 1;
    std::int64_t padding_lower = 0, padding_upper = 0;
  } output;
};
inline constexpr std::int64_t kIntegersPerAxis = 17;
Attributes::Integers encode(const std::vector<AxisTransform>& axes);
std::vector<AxisTransform> decode(const Attributes::Integers& integers);
/// Checks a step's attribute "axes" against its operands' spatial extents, from dimension 3 on.
void checkAxes(const StepCheck& check, const OperandCheck& in, const OperandCheck& weights,
               const OperandCheck& out);

/// One axis in normal form: input index i takes part in output j by kernel element k where
/// i * input_dilation == j * stride + k * kernel_dilation - padding and 0 <= i < input.
/// Views say how i, k and j map to the operands: element = first + index * step.
struct Axis {
  std::int64_t input = 1, kernel = 1, output = 1;
  std::int64_t stride = 1, kernel_dilation = 1, input_dilation = 1, padding = 0;
  std::int64_t input_first = 0, input_step = 1;
  std::int64_t kernel_first = 0, kernel_step = 1;
  std::int64_t output_first = 0, output_step = 1;
  bool whole = true;  ///< this axis covers every output element of the operand
};

/// Throws where the transforms leave a negative size.
Axis normalise(const AxisTransform& transform, std::int64_t input_size, std::int64_t kernel_size);

/// The size of the output operand along the axis.
std::int64_t outputSize(const AxisTransform& transform, std::int64_t input_size,
                        std::int64_t kernel_size);

/// Splits an axis with input dilation into axes without, so inserted zeros are never multiplied.
/// The outputs of an entry with kernel == 0 are zeros.
std::vector<Axis> phases(const Axis& axis);

}  // namespace ipujax::engine::convolution
