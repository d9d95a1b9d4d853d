#include "engine/kernels/sequence/Ctc.hpp"

#include "engine/simd/FloatMath.hpp"
#include "engine/simd/Registers.hpp"

namespace ipujax::engine::ctc {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

using namespace simd::IPUJAX_ISA_NAMESPACE;

/// exp(x) for x <= 0; results below the smallest normal float are raised to about that.
IPUJAX_INLINE float expBelow(float x) { return Formulas::expInRange(x < -87.0f ? -87.0f : x); }

/// log(x) for x in [1, 3].
IPUJAX_INLINE float logFew(float x) {
  const auto split = Formulas::splitLog(x);
  return Formulas::logSum(split.e, split.m - 1.0f);
}

void step(const float* __restrict now, const float* __restrict skip, const float* __restrict emit,
          float* __restrict next, std::int64_t n) {
  for (std::int64_t s = 0; s < n; ++s) {
    const float a = now[s], b = now[s - 1], c = now[s - 2] + skip[s];
    const float ab = a > b ? a : b, most = ab > c ? ab : c;
    const float sum = expBelow(a - most) + expBelow(b - most) + expBelow(c - most);
    const float found = most + logFew(sum) + emit[s];
    next[s] = found < kLogZero ? kLogZero : found;
  }
}

void posterior(const float* __restrict a, const float* __restrict b, const float* __restrict emit,
               float total, float* __restrict out, std::int64_t n) {
  for (std::int64_t s = 0; s < n; ++s) out[s] = expFloat(a[s] + b[s] - emit[s] - total);
}

void exponentials(const float* __restrict x, float* __restrict out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = expFloat(x[i]);
}

constexpr int kLanes = kRegisterBytes / 4;
using Floats = float __attribute__((vector_size(kRegisterBytes)));

IPUJAX_INLINE Floats load(const float* from) {
  Floats v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

float largest(const float* x, std::int64_t n) {
  Floats most = Floats{} - kInfinity;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Floats v = load(x + i);
    most = v > most ? v : most;
  }
  float found = most[0];
  for (int j = 1; j < kLanes; ++j) found = most[j] > found ? most[j] : found;
  for (; i < n; ++i) found = x[i] > found ? x[i] : found;
  return found;
}

/// Sums a few numbers, mostly in float.
double sumOfFew(const float* x, std::int64_t n) {
  Floats sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sums += load(x + i);
  double sum = 0.0;
  for (int j = 0; j < kLanes; ++j) sum += static_cast<double>(sums[j]);
  for (; i < n; ++i) sum += static_cast<double>(x[i]);
  return sum;
}

Exponentials rowExponentials(const float* __restrict x, float* __restrict out, std::int64_t n) {
  constexpr std::int64_t kFew = 256;
  const float most = largest(x, n);
  double sum = 0.0;
  for (std::int64_t begin = 0; begin < n; begin += kFew) {
    const std::int64_t end = begin + kFew < n ? begin + kFew : n;
    for (std::int64_t i = begin; i < end; ++i) {
      const float below = x[i] - most;
      const float e = expBelow(below);
      out[i] = below < -87.0f ? 0.0f : e;
    }
    sum += sumOfFew(out + begin, end - begin);
  }
  return {most, sum};
}

void scaled(const float* __restrict x, float scale, float* __restrict out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] * scale;
}
void widened(const float* __restrict x, double scale, double* __restrict out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<double>(x[i]) * scale;
}

void logAdd(const float* a, const float* b, float* out, std::int64_t n) {
  IPUJAX_IVDEP
  for (std::int64_t i = 0; i < n; ++i) {
    const float x = a[i], y = b[i], delta = x - y, most = x > y ? x : y;
    const float sum = most + log1pFloat(expFloat(-absOf(delta)));
    out[i] = delta == delta ? sum : x + y;
  }
}

/// A copy of ctc::keyOf, which compiled here could be linked into code for other CPUs.
IPUJAX_INLINE std::int32_t keyFrom(float x) {
  const auto bits = static_cast<std::int32_t>(bitsOf(x));
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

std::int32_t longer(const float* __restrict logs, float total, std::int32_t* __restrict keys,
                    std::int64_t n) {
  std::int32_t most = keyFrom(-kInfinity);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t key = keyFrom(logs[i] + total);
    keys[i] = key;
    most = key > most ? key : most;
  }
  return most;
}

void emit(const float* __restrict x, double* __restrict out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = expFloatWide(x[i]);
}

KeyRange range(const float* x, std::int64_t n) {
  KeyRange found;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t key = keyFrom(x[i]);
    found.least = key < found.least ? key : found.least;
    found.most = key > found.most ? key : found.most;
  }
  return found;
}

IPUJAX_INLINE void add(Extent& extent, double x) {
  const std::uint64_t bits = bitsOf(x), less = bits - 1;
  const auto whole = static_cast<std::int64_t>(bits);
  extent.most = whole > extent.most ? whole : extent.most;
  extent.least = less < extent.least ? less : extent.least;
}

Extent extent(const States& states, const StateWindow& window) {
  Extent found;
  for (std::int64_t k = window.blank_begin; k < window.blank_end; ++k) add(found, states.blank[k]);
  for (std::int64_t k = window.label_begin; k < window.label_end; ++k) add(found, states.label[k]);
  return found;
}

// One loop for blanks and labels, whose windows differ by at most one state at each end.

void forward(const States& before, const Emitted& emitted, const StateWindow& window,
             const States& states) {
  const double* __restrict b = before.blank;
  const double* __restrict l = before.label;
  const double* __restrict p = emitted.label;
  const double* __restrict skip = emitted.skip;
  double* __restrict to_blank = states.blank;
  double* __restrict to_label = states.label;
  const double blank = emitted.blank;
  IPUJAX_IVDEP
  for (std::int64_t k = window.label_begin; k < window.blank_end; ++k) {
    to_blank[k] = (b[k] + l[k - 1]) * blank;
    to_label[k] = madd(skip[k], l[k - 1], l[k] + b[k]) * p[k];
  }
}

void backward(const States& behind, const Emitted& emitted, const StateWindow& window,
              const States& states) {
  const double* __restrict b = behind.blank;
  const double* __restrict l = behind.label;
  const double* __restrict p = emitted.label;
  const double* __restrict skip = emitted.skip;
  double* __restrict to_blank = states.blank;
  double* __restrict to_label = states.label;
  const double blank = emitted.blank;
  IPUJAX_IVDEP
  for (std::int64_t k = window.label_begin; k < window.blank_end; ++k) {
    const double of_label = p[k] * l[k];
    to_blank[k] = madd(blank, b[k], of_label);
    to_label[k] = madd(skip[k + 1] * p[k + 1], l[k + 1], madd(blank, b[k + 1], of_label));
  }
}

/// Accumulates eight sums, which compilers keep in registers of any width.
template <class Term>
IPUJAX_INLINE double sumOf(std::int64_t begin, std::int64_t end, const Term& term) {
  double sums[8] = {};
  std::int64_t k = begin;
  for (; k + 8 <= end; k += 8)
    for (int j = 0; j < 8; ++j) sums[j] += term(k + j);
  for (; k < end; ++k) sums[0] += term(k);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

std::pair<double, double> both(const States& a, const States& b, const StateWindow& window,
                               double* __restrict label) {
  IPUJAX_IVDEP
  for (std::int64_t k = window.label_begin; k < window.label_end; ++k)
    label[k] = a.label[k] * b.label[k];
  return {sumOf(window.label_begin, window.label_end, [&](std::int64_t k) { return label[k]; }),
          sumOf(window.blank_begin, window.blank_end,
                [&](std::int64_t k) { return a.blank[k] * b.blank[k]; })};
}

}  // namespace

Loops ctcLoops() {
  return {step,   posterior, exponentials, rowExponentials, scaled,   widened, logAdd,
          longer, emit,      range,        forward,         backward, extent,  both};
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::ctc
