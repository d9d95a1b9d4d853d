#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/conv/ConvGeometry.hpp"

namespace ipujax::engine::convolution {

/// The definition of a convolution as plain loops, for any element type and number of axes.
std::unique_ptr<Kernel> makePlainConvolution(const StepDesc& step, const std::vector<Axis>& axes);

}  // namespace ipujax::engine::convolution
