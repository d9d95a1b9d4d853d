#pragma once
#include "poplar/Tensor.hpp"

namespace poputil {

/// Gives the one of lower rank dimensions of size 1 in front.
void expandToMatchRanks(poplar::Tensor& a, poplar::Tensor& b);

/// Whether sizes are alike or 1, from the last dimension on.
bool canBroadcastToMatch(const poplar::Tensor& a, const poplar::Tensor& b);

/// Expands both to a common shape by numpy's rules; throws poplibs_error where they do not agree.
void broadcastToMatch(poplar::Tensor& a, poplar::ArrayRef<std::size_t> shape);
void broadcastToMatch(poplar::Tensor& a, poplar::Tensor& b);
void broadcastToMatch(poplar::Tensor& a, poplar::Tensor& b, poplar::Tensor& c);

}  // namespace poputil
