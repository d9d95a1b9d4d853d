#pragma once
#include <cstddef>

namespace ipujax::engine {

/// The most dimensions of an operand: arrays have up to 64, as NumPy's, and compositions add some.
constexpr std::size_t kMostRank = 96;

}  // namespace ipujax::engine
