#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

/// Loops of CTC's recursions over the states of one sequence, in logarithms, chosen for this CPU.
namespace ipujax::engine::ctc {

/// Stands for the logarithm of 0: sums and products with 0 stay finite.
inline constexpr float kLogZero = -1e30f;

/// Maps a float to an integer that sorts in the total order of floats, as jax.lax.top_k compares:
/// -NaN, -inf, ... -0, 0, ... inf, NaN. valueOf is its inverse.
inline std::int32_t keyOf(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  return bits ^ (bits < 0 ? 0x7fffffff : 0);
}
inline float valueOf(std::int32_t key) {
  return std::bit_cast<float>(key ^ (key < 0 ? 0x7fffffff : 0));
}

/// State probabilities of one step: the blank before label k, and label k. The elements on either
/// side of a window are readable and 0.
struct States {
  double *blank, *label;
};
/// The states that are reachable and can still reach the end: [blank_begin, blank_end) and so on.
struct StateWindow {
  std::int64_t blank_begin, blank_end, label_begin, label_end;
};
/// The bits of a step's largest probability, and the bits of its smallest nonzero one, minus 1.
struct Extent {
  std::int64_t most = 0;
  std::uint64_t least = ~std::uint64_t{0};
};
/// Keys (see keyOf) of the smallest and the largest of several floats.
struct KeyRange {
  std::int32_t least = std::numeric_limits<std::int32_t>::max();
  std::int32_t most = std::numeric_limits<std::int32_t>::min();
};
/// Emission probabilities of a step: of the blank and of label k. skip[k] is 1 if label k can
/// directly follow label k - 1, else 0.
struct Emitted {
  double blank;
  const double *label, *skip;
};

struct Exponentials {
  float most;
  double sum;
};

struct Loops {
  /// next[s] = log(exp(now[s]) + exp(now[s - 1]) + exp(now[s - 2] + skip[s])) + emit[s]; two
  /// elements before now[0] are read.
  void (*step)(const float* now, const float* skip, const float* emit, float* next, std::int64_t n);
  /// out[s] = exp(a[s] + b[s] - emit[s] - total).
  void (*posterior)(const float* a, const float* b, const float* emit, float total, float* out,
                    std::int64_t n);
  void (*exp)(const float* x, float* out, std::int64_t n);
  /// out[i] = exp(x[i] - most), where most = max(x). Returns most and their sum, which is NaN or
  /// infinite if x contains NaN or inf.
  Exponentials (*exponentials)(const float* x, float* out, std::int64_t n);
  /// out[i] = x[i] * scale.
  void (*scaled)(const float* x, float scale, float* out, std::int64_t n);
  void (*widened)(const float* x, double scale, double* out, std::int64_t n);
  /// out[i] = log(exp(a[i]) + exp(b[i])) as in jax.numpy.logaddexp; `out` may be an operand.
  void (*logAdd)(const float* a, const float* b, float* out, std::int64_t n);
  /// keys[i] = keyOf(logs[i] + total); returns the largest.
  std::int32_t (*longer)(const float* logs, float total, std::int32_t* keys, std::int64_t n);
  /// out[i] = exp(x[i]) to float precision for x[i] in [-700, 700], otherwise unspecified.
  void (*emit)(const float* x, double* out, std::int64_t n);
  KeyRange (*range)(const float* x, std::int64_t n);
  /// Computes a step's states from those of the previous step, or from the states and emissions
  /// of the next step. A state just outside the window may get any value.
  void (*forward)(const States& before, const Emitted& emitted, const StateWindow& window,
                  const States& states);
  void (*backward)(const States& behind, const Emitted& emitted, const StateWindow& window,
                   const States& states);
  Extent (*extent)(const States& states, const StateWindow& window);
  /// label[k] = a.label[k] * b.label[k]; returns the sums over labels and over blanks.
  std::pair<double, double> (*both)(const States& a, const States& b, const StateWindow& window,
                                    double* label);
};
const Loops& loops();

}  // namespace ipujax::engine::ctc
