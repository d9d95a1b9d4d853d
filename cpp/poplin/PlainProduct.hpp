#pragma once
#include <memory>

#include "engine/Kernel.hpp"

namespace poplin::host {

/// "poplin.matmul" for integers: exact modulo the output type's range.
std::unique_ptr<ipujax::engine::Kernel> makePlainProduct(const ipujax::engine::StepDesc& step);

}  // namespace poplin::host
