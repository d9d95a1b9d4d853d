#pragma once
#include <cstdint>
#include <vector>

#include "engine/build/Draft.hpp"

namespace ipujax::engine::build {

/// A variable in tile memory as the account sees it. Times are positions of steps: an operand that
/// a step reads last may make room for what the step writes.
struct Held {
  std::uint32_t variable = 0;
  TilePart part = TilePart::kTemporaries;
  bool always_live = false;
  std::vector<Segment> live;  ///< apart and sorted; both ends inclusive
};

/// Temporaries of a step on each tile that it uses, by what they are for.
TileParts temporariesOf(const Cost& cost);

/// The variables in tile memory; adds up what is always live, and what is in streaming memory.
std::vector<Held> heldOf(Draft& draft);

}  // namespace ipujax::engine::build
