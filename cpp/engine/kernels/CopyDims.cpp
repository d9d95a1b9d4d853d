#include "engine/kernels/CopyDims.hpp"

#include <algorithm>
#include <cstdlib>

namespace ipujax::engine {

std::vector<CopyDim> orderedAndMerged(std::span<const CopyDim> dims) {
  std::vector<CopyDim> ordered;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(ordered),
               [](const CopyDim& dim) { return dim.n != 1; });
  std::stable_sort(ordered.begin(), ordered.end(), [](const CopyDim& a, const CopyDim& b) {
    return std::abs(a.dst) > std::abs(b.dst);
  });
  std::vector<CopyDim> merged;
  for (const CopyDim& dim : ordered) {
    if (!merged.empty() && merged.back().dst == dim.dst * dim.n &&
        merged.back().src == dim.src * dim.n) {
      merged.back() = {merged.back().n * dim.n, dim.src, dim.dst};
    } else {
      merged.push_back(dim);
    }
  }
  return merged;
}

}  // namespace ipujax::engine
