#include "engine/kernels/CopyDims.hpp"

#include <algorithm>
#include <cstdlib>

#include "engine/LoopNest.hpp"

namespace ipujax::engine {

std::vector<CopyDim> orderedAndMerged(std::span<const CopyDim> dims) {
  std::vector<CopyDim> ordered(dims.begin(), dims.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const CopyDim& a, const CopyDim& b) {
    return std::abs(a.dst) > std::abs(b.dst);
  });
  std::vector<CopyDim> merged;
  for (const CopyDim& dim : ordered)
    appendLoop<&CopyDim::n, &CopyDim::src, &CopyDim::dst>(merged, dim);
  return merged;
}

}  // namespace ipujax::engine
