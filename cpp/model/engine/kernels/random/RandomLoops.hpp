#pragma once
#include <cstdint>

#include "engine/simd/Isa.hpp"

/// Loops of poprand's kernels over words of random bits.
namespace ipujax::engine {

/// Words up to and including `last` are kept if `any` is set, else none.
struct Kept {
  std::uint32_t last;
  bool any;
  /// Keeps `threshold` of 2^32 words; a threshold of 2^32 keeps all.
  explicit Kept(std::uint64_t threshold)
      : last(static_cast<std::uint32_t>(threshold - 1)), any(threshold > 0) {}
  bool keeps(std::uint32_t word) const { return any && word <= last; }
};

/// All compute in double and round once to float, then to half where needed.
struct RandomLoops {
  /// low + range * u, with u in [0, 1) of the words' upper 24 bits.
  void (*uniform)(const std::uint32_t* words, float* out, std::int64_t n, double low, double range);
  /// 1 where a word is kept, else 0.
  void (*kept)(const std::uint32_t* words, float* out, std::int64_t n, Kept kept);
  /// values[i] = mean + deviation * values[i].
  void (*scaled)(float* values, std::int64_t n, double mean, double deviation);
  /// in[i] * scale where word i * step is kept, else 0. `out` may be `in`.
  void (*drop_floats)(const std::uint32_t* words, std::int64_t step, const float* in, float* out,
                      std::int64_t n, Kept kept, double scale);
  void (*drop_halves)(const std::uint32_t* words, std::int64_t step, const std::uint16_t* in,
                      std::uint16_t* out, std::int64_t n, Kept kept, double scale);
};

IPUJAX_DECLARE_SIMD(extern const RandomLoops kRandomLoops)

/// The loops for this CPU.
inline const RandomLoops& randomLoops() {
  static const RandomLoops& picked = IPUJAX_PICK(kRandomLoops);
  return picked;
}

}  // namespace ipujax::engine
