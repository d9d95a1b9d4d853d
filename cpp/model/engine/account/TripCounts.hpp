#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/Cost.hpp"
#include "engine/image/Image.hpp"

namespace ipujax::engine {

/// Mean iterations of each loop, counted in a run of a program, by node; nullopt if it did not run.
/// Empty if the program has no loop whose number of iterations only a run knows.
using TripMeans = std::vector<std::optional<double>>;

/// Counts the iterations of such loops in one run of a program. Any thread may add.
class TripCounts {
 public:
  explicit TripCounts(const Image& image);
  void clear();
  void add(std::uint32_t node, std::uint64_t iterations);  ///< a loop ended, on one replica
  TripMeans means() const;

 private:
  struct Count {
    std::atomic<std::uint64_t> runs{0};
    std::atomic<std::uint64_t> iterations{0};
  };
  std::vector<Count> counts_;  // by node; empty if there is nothing to count
};

/// Cost of a node with its children. Loops of unknown length run as often as counted, or as often
/// as the image assumes if nothing was counted.
Cost costOf(const Image& image, std::uint32_t node, const TripMeans& counted = {});

}  // namespace ipujax::engine
