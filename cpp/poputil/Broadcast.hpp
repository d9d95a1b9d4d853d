#pragma once
#include "poplar/Tensor.hpp"

namespace poputil {

/// Expands both to a common shape by numpy's rules; throws poplar_error where they do not agree.
void broadcastToMatch(poplar::Tensor& a, poplar::ArrayRef<std::size_t> shape);
void broadcastToMatch(poplar::Tensor& a, poplar::Tensor& b);
void broadcastToMatch(poplar::Tensor& a, poplar::Tensor& b, poplar::Tensor& c);

}  // namespace poputil
