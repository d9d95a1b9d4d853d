#pragma once
#include <cstdint>
#include <vector>

#include "engine/build/Draft.hpp"

namespace ipujax::engine::build {

/// A variable in tile memory as the account sees it. The results of a step may take the place of
/// operands that it is the last to read.
struct Held {
  std::uint32_t storage = 0;
  std::uint32_t variable = 0;
  TilePart part = TilePart::kTemporaries;
  bool always_live = false;
  std::vector<Segment> live;  ///< in moments, both ends inclusive; disjoint and sorted
};

/// What tile memory holds over time. A moment is a distinct pair of a step and what is live while
/// the step runs: functions and pipelines come back to the same moments many times.
struct History {
  std::vector<Held> held;
  std::vector<std::int64_t> steps;       ///< by moment; -1: no step
  std::vector<std::uint32_t> moment_of;  ///< by position of the program
};

/// Temporaries of a step on each tile that it uses, by their use.
TileParts temporariesOf(const Cost& cost);

/// Also sums up, in the image, what is always live and what is in streaming memory.
History historyOf(Draft& draft);

}  // namespace ipujax::engine::build
