#include "poputil/Broadcast.hpp"

#include <algorithm>

#include "poputil/exceptions.hpp"

namespace poputil {
namespace {

std::vector<std::size_t> commonShape(const std::vector<std::size_t>& a,
                                     const std::vector<std::size_t>& b) {
  std::vector<std::size_t> shape(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::size_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw poputil::poplibs_error("[broadcastToMatch] needs sizes that agree or are 1; got " +
                                   std::to_string(x) + " and " + std::to_string(y) +
                                   ". Reshape one of them.");
    shape[shape.size() - 1 - i] = x == 1 ? y : x;
  }
  return shape;
}

}  // namespace

void expandToMatchRanks(poplar::Tensor& a, poplar::Tensor& b) {
  poplar::Tensor& shorter = a.rank() < b.rank() ? a : b;
  const std::size_t rank = std::max(a.rank(), b.rank());
  shorter = shorter.expand(std::vector<std::size_t>(rank - shorter.rank(), 0));
}

bool canBroadcastToMatch(const poplar::Tensor& a, const poplar::Tensor& b) {
  for (std::size_t i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    const std::size_t x = a.dim(a.rank() - i), y = b.dim(b.rank() - i);
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

void broadcastToMatch(poplar::Tensor& a, poplar::ArrayRef<std::size_t> shape) {
  a.broadcastToMatch(shape);
}

void broadcastToMatch(poplar::Tensor& a, poplar::Tensor& b) {
  const auto shape = commonShape(a.shape(), b.shape());
  a.broadcastToMatch(shape);
  b.broadcastToMatch(shape);
}

void broadcastToMatch(poplar::Tensor& a, poplar::Tensor& b, poplar::Tensor& c) {
  const auto shape = commonShape(commonShape(a.shape(), b.shape()), c.shape());
  a.broadcastToMatch(shape);
  b.broadcastToMatch(shape);
  c.broadcastToMatch(shape);
}

}  // namespace poputil
