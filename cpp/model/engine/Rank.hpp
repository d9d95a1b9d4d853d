#pragma once
#include <cstddef>

namespace ipujax::engine {

/// Maximum rank of an operand: arrays have up to 64 dimensions, as in NumPy; compositions add some.
constexpr std::size_t kMostRank = 96;

}  // namespace ipujax::engine
