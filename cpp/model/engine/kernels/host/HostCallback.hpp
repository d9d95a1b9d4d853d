#pragma once
#include <string>

#include "engine/ElementType.hpp"

namespace ipujax::engine {

/// The type that holds a JAX dtype on the device: "bfloat16" is held as kUInt16 bits. Throws
/// poplar_error for dtypes the device has no type for (complex64 ...).
ElementType elementTypeOf(const std::string& dtype);

}  // namespace ipujax::engine
