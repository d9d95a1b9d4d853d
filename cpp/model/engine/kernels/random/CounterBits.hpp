#pragma once
#include <cstdint>

#include "engine/simd/Isa.hpp"

/// Counter-based generators: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
/// Threefry2x32 with 20 rounds, Philox4x32 with 10.
namespace ipujax::engine {

struct CounterBits {
  /// first[i], second[i] = threefry(counter + i, key), i < n.
  void (*threefry)(std::uint32_t* first, std::uint32_t* second, std::uint64_t counter,
                   std::int64_t n, std::uint32_t key0, std::uint32_t key1);
  /// words[4 i .. 4 i + 3] = philox(counter + i, key), i < n; the counter has 128 bits.
  void (*philox)(std::uint32_t* words, std::uint64_t low, std::uint64_t high, std::int64_t n,
                 std::uint32_t key0, std::uint32_t key1);
  /// The same for counters that are not consecutive: counters[i] is the low part.
  void (*philox_at)(std::uint32_t* words, const std::uint64_t* counters, std::uint64_t high,
                    std::int64_t n, std::uint32_t key0, std::uint32_t key1);
  /// Standard normal numbers, by Box and Muller: words 2 k and 2 k + 1 make elements 2 k and
  /// 2 k + 1, k < pairs.
  void (*normals)(const std::uint32_t* words, float* out, std::int64_t pairs);
};

IPUJAX_DECLARE_SIMD(extern const CounterBits kCounterBits)

/// The generators for this CPU.
inline const CounterBits& counterBits() {
  static const CounterBits& picked = IPUJAX_PICK(kCounterBits);
  return picked;
}

}  // namespace ipujax::engine
