#pragma once
#include <vector>

namespace ipujax::engine {

/// Adds an inner loop to a nest. Drops a loop of one iteration, and merges two loops into one where
/// all strides allow it. kExtent and kStrides are members of Loop:
/// appendLoop<&CopyDim::n, &CopyDim::src, &CopyDim::dst>(nest, loop).
template <auto kExtent, auto... kStrides, class Loop>
void appendLoop(std::vector<Loop>& nest, Loop loop) {
  if (loop.*kExtent == 1) return;
  if (!nest.empty() && ((nest.back().*kStrides == loop.*kStrides * loop.*kExtent) && ...)) {
    loop.*kExtent *= nest.back().*kExtent;
    nest.back() = loop;
  } else {
    nest.push_back(loop);
  }
}

}  // namespace ipujax::engine
