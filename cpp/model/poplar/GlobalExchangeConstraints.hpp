#pragma once
#include <vector>

#include "poplar/ArrayRef.hpp"

namespace poplar {

/// A data flow from one IPU to another.
struct GlobalExchangeFlow {
  unsigned src;
  unsigned dst;
  GlobalExchangeFlow(unsigned src, unsigned dst) : src(src), dst(dst) {}
};

/// The bandwidth, in bits per second, that `flows` share.
struct GlobalExchangeConstraint {
  double bandwidth;
  std::vector<GlobalExchangeFlow> flows;
  GlobalExchangeConstraint(double bandwidth, ArrayRef<GlobalExchangeFlow> flows)
      : bandwidth(bandwidth), flows(flows.begin(), flows.end()) {}
};

}  // namespace poplar
