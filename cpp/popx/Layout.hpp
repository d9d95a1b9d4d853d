#pragma once
#include "popx/Native.hpp"

namespace popx {

/// Whether the elements of two tensors of one shape lie in memory in the same way, so that a step
/// reads both in the same order. Tensors of several variables count as row-major: what needs one
/// piece of memory copies them to one first.
bool sameLayout(const poplar::Tensor& a, const poplar::Tensor& b);

}  // namespace popx
