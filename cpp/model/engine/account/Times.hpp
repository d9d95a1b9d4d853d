#pragma once
#include <vector>

#include "engine/image/Image.hpp"

namespace ipujax::engine {

/// By node: how often one run executes it, as Image::cost() counts; 0 in branches not taken.
std::vector<double> timesRun(const Image& image);

/// Of the collectives in one run: sums over their steps, as Image::cost() counts.
struct CollectiveAccount {
  double cycles = 0;
  double link_bytes = 0;  ///< per replica
};
CollectiveAccount collectivesOf(const Image& image);

}  // namespace ipujax::engine
