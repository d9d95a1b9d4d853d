#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/Kernel.hpp"
#include "poplin/internal/ConvGeometry.hpp"

namespace poplin::host {

/// The definition of a convolution as plain loops, for any element type and number of axes.
std::unique_ptr<ipujax::engine::Kernel> makePlainConvolution(
    const ipujax::engine::StepDesc& step, const std::vector<geometry::Axis>& axes);

}  // namespace poplin::host
