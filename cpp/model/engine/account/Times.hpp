#pragma once
#include <vector>

#include "engine/image/Image.hpp"

namespace ipujax::engine {

/// How often one run executes each node, counted as in Image::cost(); 0 in branches not taken.
std::vector<double> timesRun(const Image& image);

/// Sums over the collectives of one run, counted as in Image::cost().
struct CollectiveAccount {
  double cycles = 0;
  double link_bytes = 0;  ///< per replica
};
CollectiveAccount collectivesOf(const Image& image);

}  // namespace ipujax::engine
