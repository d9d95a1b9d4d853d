#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "engine/Half.hpp"
#include "engine/kernels/move/CopyCombine.hpp"
#include "engine/kernels/reduce/ReduceOps.hpp"

namespace ipujax::engine {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

namespace ops = reduction::IPUJAX_ISA_NAMESPACE;
using ops::Half;
template <class T>
using Value = typename ops::Input<T>::Acc;

template <class T>
inline Value<T> load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  if constexpr (std::is_same_v<T, Half>) {
    return ops::toFloat(value);
  } else {
    return value;
  }
}

template <class T>
inline void store(std::byte* p, Value<T> value) {
  if constexpr (std::is_same_v<T, Half>) {
#ifdef __F16C__
    const Half half{static_cast<std::uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT))};
#else
    const Half half{floatToHalf(value)};
#endif
    std::memcpy(p, &half, sizeof(half));
  } else {
    std::memcpy(p, &value, sizeof(T));
  }
}

/// b if neither is larger or smaller. For single elements: compilers make a branch of the
/// comparison, which no CPU can predict.
template <bool kLarger>
inline float oneOrSecond(float a, float b) {
#if defined(__SSE2__)
  const __m128 x = _mm_set_ss(a), y = _mm_set_ss(b);
  return _mm_cvtss_f32(kLarger ? _mm_max_ss(x, y) : _mm_min_ss(x, y));
#else
  return (kLarger ? a > b : a < b) ? a : b;
#endif
}
/// The same result as Maximum and Minimum, where loops are not vectorised.
template <bool kLarger>
inline float extremeOfOne(float a, float b) {
  const auto x = std::bit_cast<std::uint32_t>(oneOrSecond<kLarger>(a, b));
  const auto y = std::bit_cast<std::uint32_t>(oneOrSecond<kLarger>(b, a));
  if constexpr (!kLarger) return std::bit_cast<float>(x | y);
  const std::uint32_t nan = 0u - static_cast<std::uint32_t>((a != a) | (b != b));
  return std::bit_cast<float>((x & y) | nan);
}

/// kAlone: not in a loop that compilers vectorise.
template <class T, class Op, bool kScaled, bool kAlone = false>
inline void combine(std::byte* dst, const std::byte* src, [[maybe_unused]] double scale) {
  Value<T> a = load<T>(dst);
  Value<T> b = load<T>(src);
  if constexpr (kScaled) {
    using Whole = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
    ops::Multiply::into(b, static_cast<Value<T>>(static_cast<Whole>(scale)));
  }
  if constexpr (kAlone && std::is_same_v<Value<T>, float> && std::is_same_v<Op, ops::Maximum>)
    a = extremeOfOne<true>(a, b);
  else if constexpr (kAlone && std::is_same_v<Value<T>, float> && std::is_same_v<Op, ops::Minimum>)
    a = extremeOfOne<false>(a, b);
  else
    Op::into(a, b);
  store<T>(dst, a);
}

/// Combines whole vectors of at most 32 bytes, short enough for rows of few elements; returns how
/// many elements.
template <class T, class Op>
inline std::int64_t vectors(std::byte* dst, const std::byte* src, std::int64_t n) {
  constexpr std::int64_t kBytes = std::min(32, ops::kRegisterBytes);
  typedef T Vector __attribute__((vector_size(kBytes)));
  const std::int64_t bytes = n * static_cast<std::int64_t>(sizeof(T)) / kBytes * kBytes;
  for (std::int64_t at = 0; at < bytes; at += kBytes) {
    Vector a, b;
    std::memcpy(&a, dst + at, kBytes);
    std::memcpy(&b, src + at, kBytes);
    a = Op::of(a, b);
    std::memcpy(dst + at, &a, kBytes);
  }
  return bytes / static_cast<std::int64_t>(sizeof(T));
}

template <class T, class Op, bool kScaled>
inline void run(std::byte* dst, const std::byte* src, std::int64_t n, std::int64_t dst_stride,
                std::int64_t src_stride, double scale) {
  constexpr std::int64_t kSize = sizeof(T);
  if (dst_stride == kSize && src_stride == kSize) {
    std::int64_t i = 0;
    if constexpr (!kScaled && std::is_arithmetic_v<T>) i = vectors<T, Op>(dst, src, n);
    for (; i < n; ++i) combine<T, Op, kScaled>(dst + i * kSize, src + i * kSize, scale);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i, dst += dst_stride, src += src_stride)
    combine<T, Op, kScaled>(dst, src, scale);
}

template <class T, class Op, bool kScaled>
void elements(std::byte* dst, const std::byte* src, const ElementMove* moves, std::int64_t n,
              double scale) {
  for (std::int64_t i = 0; i < n; ++i)
    combine<T, Op, kScaled, true>(dst + moves[i].dst, src + moves[i].src, scale);
}

template <class T, class Op, bool kScaled>
void runs(std::byte* dst, const std::byte* src, const ElementMove* moves, std::int64_t count,
          std::int64_t n, double scale) {
  constexpr std::int64_t kSize = sizeof(T);
  for (std::int64_t i = 0; i < count; ++i)
    run<T, Op, kScaled>(dst + moves[i].dst, src + moves[i].src, n, kSize, kSize, scale);
}

CombinerTable makeTable() {
  CombinerTable table;
  ops::makeReducers([&]<class In, class Op>(reduction::Reducer reducer, ElementType type) {
    // Other updates are expressions.
    constexpr bool kNamed = !std::is_same_v<Op, ops::LogAdd> && !std::is_same_v<Op, ops::Xor> &&
                            !std::is_same_v<Op, ops::SquareAdd>;
    const auto at = static_cast<std::size_t>(type);
    if constexpr (kNamed)
      table.of[static_cast<int>(reducer)][at] = {run<In, Op, false>, elements<In, Op, false>,
                                                 runs<In, Op, false>};
    if constexpr (std::is_same_v<Op, ops::Add>)
      table.scaled_add[at] = {run<In, Op, true>, elements<In, Op, true>, runs<In, Op, true>};
  });
  return table;
}

}  // namespace

const CombinerTable& combinerTable() {
  static const CombinerTable table = makeTable();
  return table;
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine
