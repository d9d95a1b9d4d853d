#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/Cost.hpp"
#include "engine/image/Image.hpp"

namespace ipujax::engine {

/// Mean iterations of each loop that a run of a program counted, by node; nothing where none ran.
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
  std::vector<Count> counts_;  // by node; none where there is nothing to count
};

/// Cost of a node and what it holds; loops of unknown length run as often as was counted, or as the
/// image assumes where nothing was.
Cost costOf(const Image& image, std::uint32_t node, const TripMeans& counted = {});

}  // namespace ipujax::engine
