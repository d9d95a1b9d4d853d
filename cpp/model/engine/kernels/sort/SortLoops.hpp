#pragma once
#include <cstdint>

#include "engine/simd/Isa.hpp"

namespace ipujax::engine {

/// The vector loops of sorting.
struct SortLoops {
  /// out[i] = x[i] as an unsigned integer in the floats' total order, then ^ flip.
  void (*total_keys)(const std::uint32_t* x, std::uint32_t flip, std::uint32_t* out,
                     std::int64_t n);
  /// The same, but with -0 equal to 0 and every NaN largest.
  void (*canonical_keys)(const std::uint32_t* x, std::uint32_t flip, std::uint32_t* out,
                         std::int64_t n);
  /// Returns the start of the first block of 64, from `begin` (a multiple of 64) on, with a key of
  /// at most `limit`, or n. An incomplete last block is always returned.
  std::int64_t (*next_candidate)(const std::uint32_t* keys, std::int64_t begin, std::int64_t n,
                                 std::uint32_t limit);
};
IPUJAX_DECLARE_SIMD(extern const SortLoops kSortLoops)
/// The loops for this CPU.
inline const SortLoops& sortLoops() {
  static const SortLoops& picked = IPUJAX_PICK(kSortLoops);
  return picked;
}

}  // namespace ipujax::engine
