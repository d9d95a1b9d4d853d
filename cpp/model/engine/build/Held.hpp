#pragma once
#include <cstdint>
#include <vector>

#include "engine/build/Draft.hpp"

namespace ipujax::engine::build {

/// A variable in tile memory as the account sees it. An operand that a step reads last may make
/// room for what the step writes.
struct Held {
  std::uint32_t storage = 0;
  std::uint32_t variable = 0;
  TilePart part = TilePart::kTemporaries;
  bool always_live = false;
  std::vector<Segment> live;  ///< in moments, both ends inclusive; apart and sorted
};

/// What tile memory holds over time. A moment is a step with what is live while it runs, when that
/// is so for the first time: functions and pipelines come back to the same moments many times.
struct History {
  std::vector<Held> held;
  std::vector<std::int64_t> steps;       ///< by moment; -1: no step
  std::vector<std::uint32_t> moment_of;  ///< by position of the program
};

/// Temporaries of a step on each tile that it uses, by what they are for.
TileParts temporariesOf(const Cost& cost);

/// Also adds up what is always live, and what is in streaming memory.
History historyOf(Draft& draft);

}  // namespace ipujax::engine::build
