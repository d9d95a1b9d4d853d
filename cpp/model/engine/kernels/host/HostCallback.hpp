#pragma once
#include <string>

#include "engine/ElementType.hpp"
#include "engine/image/Step.hpp"

namespace ipujax::engine {

/// The type that holds a JAX dtype on the device: "bfloat16" is held as kUInt16 bits. Throws
/// poplar_error for dtypes the device has no type for (complex64 ...).
ElementType elementTypeOf(const std::string& dtype);

/// Removes the id of the function on the host, if the step calls one: it differs from process to
/// process.
void forgetCallback(StepDesc& step);

}  // namespace ipujax::engine
