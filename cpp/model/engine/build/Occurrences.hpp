#pragma once
#include <cstdint>
#include <vector>

#include "engine/build/Draft.hpp"

namespace ipujax::engine::build {

/// Positions of each step in the program: several if its function is called several times.
class Occurrences {
 public:
  explicit Occurrences(const Draft& draft);

  /// Whether the steps at two positions of one sequence always run together: wherever one of them
  /// occurs the other does, and the same steps lie between them.
  bool together(std::uint32_t first, std::uint32_t second) const;
  /// Last position of the step that is at `position`.
  std::uint32_t last(std::uint32_t position) const { return placesOf(position).back(); }

 private:
  std::int64_t stepAt(std::uint32_t position) const { return draft_.occurrences[position].step; }
  const std::vector<std::uint32_t>& placesOf(std::uint32_t position) const {
    return places_[static_cast<std::size_t>(stepAt(position))];
  }
  void findSequences(const Span& span);

  const Draft& draft_;
  std::vector<std::vector<std::uint32_t>> places_;  ///< positions, by step
  std::vector<const Span*> sequence_;               ///< that has the step, by position
};

}  // namespace ipujax::engine::build
