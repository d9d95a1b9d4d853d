#include "engine/image/Image.hpp"

#include <algorithm>

namespace ipujax::engine {

double Image::elapsedCycles() const {
  double longest = 0;
  for (const auto& ipu : ipus) longest = std::max(longest, ipu.cycles());
  return longest;
}

}  // namespace ipujax::engine
