#pragma once
#include <cstdint>

/// Loops of CTC's recursions over the states of one sequence, in logarithms, chosen for this CPU.
namespace ipujax::engine::ctc {

/// Stands for the logarithm of 0: sums and products with 0 stay finite.
inline constexpr float kLogZero = -1e30f;

struct Loops {
  /// next[s] = log(exp(now[s]) + exp(now[s - 1]) + exp(now[s - 2] + skip[s])) + emit[s]; two
  /// elements before now[0] are read.
  void (*step)(const float* now, const float* skip, const float* emit, float* next, std::int64_t n);
  /// out[s] = exp(a[s] + b[s] - emit[s] - total).
  void (*posterior)(const float* a, const float* b, const float* emit, float total, float* out,
                    std::int64_t n);
  void (*exp)(const float* x, float* out, std::int64_t n);
};
const Loops& loops();

}  // namespace ipujax::engine::ctc
