#pragma once
#include "poplar/Tensor.hpp"

namespace poputil {

/// Prepends dimensions of size 1 to the tensor of lower rank.
void expandToMatchRanks(poplar::Tensor& a, poplar::Tensor& b);

/// Whether sizes are equal or 1, compared from the last dimension.
bool canBroadcastToMatch(const poplar::Tensor& a, const poplar::Tensor& b);

/// Broadcasts to `shape` or a common shape by NumPy's rules. Throw poplar_error if sizes conflict.
void broadcastToMatch(poplar::Tensor& a, poplar::ArrayRef<std::size_t> shape);
void broadcastToMatch(poplar::Tensor& a, poplar::Tensor& b);
void broadcastToMatch(poplar::Tensor& a, poplar::Tensor& b, poplar::Tensor& c);

}  // namespace poputil
