#include "engine/simd/VectorOps.hpp"

#include <cstring>
#include <limits>
#include <type_traits>

#include "engine/simd/HalfMath.hpp"
#ifdef __F16C__
#include <immintrin.h>
#endif

/// Half conversion, reductions, accumulation, fill, strided copies.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {

#if defined(__clang__)
#define IPUJAX_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define IPUJAX_IVDEP _Pragma("GCC ivdep")
#endif

void halfToFloat(const std::uint16_t* in, float* out, std::int64_t n) {
  std::int64_t k = 0;
#if defined(__AVX512F__)
  for (; k + 16 <= n; k += 16)
    _mm512_storeu_ps(out + k,
                     _mm512_maskz_cvtph_ps(
                         0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + k))));
#elif defined(__F16C__)
  for (; k + 8 <= n; k += 8)
    _mm256_storeu_ps(out + k,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + k))));
#endif
#if defined(__F16C__)
  for (; k < n; ++k) out[k] = _cvtsh_ss(in[k]);
#endif
  for (; k < n; ++k) out[k] = halfBitsToFloat(in[k]);
}

void floatToHalf(const float* in, std::uint16_t* out, std::int64_t n) {
  std::int64_t k = 0;
#if defined(__AVX512F__)
  for (; k + 16 <= n; k += 16)
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(out + k),
        _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(in + k), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  for (; k + 8 <= n; k += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + k),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + k), _MM_FROUND_TO_NEAREST_INT));
#endif
#if defined(__F16C__)
  for (; k < n; ++k) out[k] = _cvtss_sh(in[k], _MM_FROUND_TO_NEAREST_INT);
#endif
  for (; k < n; ++k) out[k] = floatToHalfBits(in[k]);
}

void roundToHalf(float* values, std::int64_t n) {
  std::int64_t k = 0;
#if defined(__AVX512F__)
  for (; k + 16 <= n; k += 16)
    _mm512_storeu_ps(
        values + k,
        _mm512_maskz_cvtph_ps(0xffff, _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(values + k),
                                                            _MM_FROUND_TO_NEAREST_INT)));
#elif defined(__F16C__)
  for (; k + 8 <= n; k += 8)
    _mm256_storeu_ps(values + k, _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_loadu_ps(values + k),
                                                                 _MM_FROUND_TO_NEAREST_INT)));
#endif
  for (; k < n; ++k) values[k] = roundedToHalf(values[k]);
}

namespace {

template <Reduction kOp, class T>
IPUJAX_INLINE T combine(T a, T b) {
  using U = std::conditional_t<
      std::is_floating_point_v<T>, T,
      std::conditional_t<sizeof(T) < 4, unsigned,
                         std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
  if constexpr (kOp == Reduction::kAdd)
    return static_cast<T>(U(a) + U(b));
  else if constexpr (kOp == Reduction::kMultiply)
    return static_cast<T>(U(a) * U(b));
  else if constexpr (kOp == Reduction::kMaximum)
    return (a != a) ? a : (a > b ? a : b);
  else if constexpr (kOp == Reduction::kMinimum)
    return (a != a) ? a : (a < b ? a : b);
  else if constexpr (std::is_floating_point_v<T>)
    return a;
  else if constexpr (kOp == Reduction::kAnd)
    return static_cast<T>(a & b);
  else
    return static_cast<T>(a | b);
}

template <Reduction kOp, class T>
constexpr T identity() {
  using L = std::numeric_limits<T>;
  if constexpr (kOp == Reduction::kAdd || kOp == Reduction::kOr)
    return T(0);
  else if constexpr (kOp == Reduction::kMultiply)
    return T(1);
  else if constexpr (kOp == Reduction::kMaximum)
    return L::has_infinity ? -L::infinity() : L::min();
  else if constexpr (kOp == Reduction::kMinimum)
    return L::has_infinity ? L::infinity() : L::max();
  else
    return static_cast<T>(
        ~static_cast<std::make_unsigned_t<std::conditional_t<std::is_floating_point_v<T>, int, T>>>(
            0));
}

/// Lanes keep additions independent, which is what lets the loop vectorise.
template <Reduction kOp, class T>
T reduce(const T* in, std::int64_t n) {
  constexpr int kLanes = 256 / sizeof(T) > 64 ? 64 : 256 / sizeof(T);
  std::int64_t k = 0;
  T result = identity<kOp, T>();
  if (n >= kLanes) {
    T lanes[kLanes];
    for (int i = 0; i < kLanes; ++i) lanes[i] = in[i];
    for (k = kLanes; k + kLanes <= n; k += kLanes)
      for (int i = 0; i < kLanes; ++i) lanes[i] = combine<kOp, T>(lanes[i], in[k + i]);
    for (int width = kLanes / 2; width > 0; width /= 2)
      for (int i = 0; i < width; ++i) lanes[i] = combine<kOp, T>(lanes[i], lanes[i + width]);
    result = lanes[0];
  }
  for (; k < n; ++k) result = combine<kOp, T>(result, in[k]);
  return result;
}

template <Reduction kOp>
float reduceHalf(const std::uint16_t* in, std::int64_t n) {
  float block[512];
  float result = identity<kOp, float>();
  for (std::int64_t begin = 0; begin < n; begin += 512) {
    const std::int64_t m = n - begin < 512 ? n - begin : 512;
    halfToFloat(in + begin, block, m);
    result = combine<kOp, float>(result, reduce<kOp, float>(block, m));
  }
  return result;
}

template <Reduction kOp, class T>
void accumulateLoop(T* acc, const T* in, std::int64_t n) {
  IPUJAX_IVDEP
  for (std::int64_t k = 0; k < n; ++k) acc[k] = combine<kOp, T>(acc[k], in[k]);
}

template <Reduction kOp>
void accumulateHalf(std::uint16_t* acc, const std::uint16_t* in, std::int64_t n) {
  float a[512];
  float b[512];
  for (std::int64_t begin = 0; begin < n; begin += 512) {
    const std::int64_t m = n - begin < 512 ? n - begin : 512;
    halfToFloat(acc + begin, a, m);
    halfToFloat(in + begin, b, m);
    accumulateLoop<kOp, float>(a, b, m);
    floatToHalf(a, acc + begin, m);
  }
}

template <Reduction kOp, class T>
void reduceTyped(const void* in, void* result, std::int64_t n) {
  const T value = reduce<kOp, T>(static_cast<const T*>(in), n);
  std::memcpy(result, &value, sizeof(T));
}
template <Reduction kOp, class T>
void accumulateTyped(void* acc, const void* in, std::int64_t n) {
  accumulateLoop<kOp, T>(static_cast<T*>(acc), static_cast<const T*>(in), n);
}

/// bool: sums and maxima are "or", products and minima "and"; "and" of nothing is 1, not 255.
template <Reduction kOp>
constexpr Reduction boolOp() {
  return kOp == Reduction::kAdd || kOp == Reduction::kMaximum || kOp == Reduction::kOr
             ? Reduction::kOr
             : Reduction::kMinimum;
}

template <Reduction kOp>
bool reduceOp(ElementType type, const void* in, void* result, std::int64_t n) {
  constexpr bool kBitwise = kOp == Reduction::kAnd || kOp == Reduction::kOr;
  switch (type) {
    case ElementType::kBool: {
      const auto v = reduce<boolOp<kOp>(), std::uint8_t>(static_cast<const std::uint8_t*>(in), n);
      *static_cast<std::uint8_t*>(result) = v != 0;
      return true;
    }
    case ElementType::kInt8:
      reduceTyped<kOp, std::int8_t>(in, result, n);
      return true;
    case ElementType::kUInt8:
      reduceTyped<kOp, std::uint8_t>(in, result, n);
      return true;
    case ElementType::kInt16:
      reduceTyped<kOp, std::int16_t>(in, result, n);
      return true;
    case ElementType::kUInt16:
      reduceTyped<kOp, std::uint16_t>(in, result, n);
      return true;
    case ElementType::kInt32:
      reduceTyped<kOp, std::int32_t>(in, result, n);
      return true;
    case ElementType::kUInt32:
      reduceTyped<kOp, std::uint32_t>(in, result, n);
      return true;
    case ElementType::kInt64:
      reduceTyped<kOp, std::int64_t>(in, result, n);
      return true;
    case ElementType::kUInt64:
      reduceTyped<kOp, std::uint64_t>(in, result, n);
      return true;
    case ElementType::kFloat:
      if constexpr (kBitwise)
        return false;
      else
        reduceTyped<kOp, float>(in, result, n);
      return true;
    case ElementType::kHalf:
      if constexpr (kBitwise)
        return false;
      else {
        const float v = reduceHalf<kOp>(static_cast<const std::uint16_t*>(in), n);
        *static_cast<std::uint16_t*>(result) = floatToHalfBits(v);
      }
      return true;
    default:
      return false;
  }
}

template <Reduction kOp>
bool accumulateOp(ElementType type, void* acc, const void* in, std::int64_t n) {
  constexpr bool kBitwise = kOp == Reduction::kAnd || kOp == Reduction::kOr;
  switch (type) {
    case ElementType::kBool:
      accumulateTyped<boolOp<kOp>(), std::uint8_t>(acc, in, n);
      return true;
    case ElementType::kInt8:
      accumulateTyped<kOp, std::int8_t>(acc, in, n);
      return true;
    case ElementType::kUInt8:
      accumulateTyped<kOp, std::uint8_t>(acc, in, n);
      return true;
    case ElementType::kInt16:
      accumulateTyped<kOp, std::int16_t>(acc, in, n);
      return true;
    case ElementType::kUInt16:
      accumulateTyped<kOp, std::uint16_t>(acc, in, n);
      return true;
    case ElementType::kInt32:
      accumulateTyped<kOp, std::int32_t>(acc, in, n);
      return true;
    case ElementType::kUInt32:
      accumulateTyped<kOp, std::uint32_t>(acc, in, n);
      return true;
    case ElementType::kInt64:
      accumulateTyped<kOp, std::int64_t>(acc, in, n);
      return true;
    case ElementType::kUInt64:
      accumulateTyped<kOp, std::uint64_t>(acc, in, n);
      return true;
    case ElementType::kFloat:
      if constexpr (kBitwise)
        return false;
      else
        accumulateTyped<kOp, float>(acc, in, n);
      return true;
    case ElementType::kHalf:
      if constexpr (kBitwise)
        return false;
      else
        accumulateHalf<kOp>(static_cast<std::uint16_t*>(acc), static_cast<const std::uint16_t*>(in),
                            n);
      return true;
    default:
      return false;
  }
}
}  // namespace

bool reduceContiguous(Reduction op, ElementType type, const void* in, void* result,
                      std::int64_t n) {
  switch (op) {
    case Reduction::kAdd:
      return reduceOp<Reduction::kAdd>(type, in, result, n);
    case Reduction::kMultiply:
      return reduceOp<Reduction::kMultiply>(type, in, result, n);
    case Reduction::kMaximum:
      return reduceOp<Reduction::kMaximum>(type, in, result, n);
    case Reduction::kMinimum:
      return reduceOp<Reduction::kMinimum>(type, in, result, n);
    case Reduction::kAnd:
      return reduceOp<Reduction::kAnd>(type, in, result, n);
    case Reduction::kOr:
      return reduceOp<Reduction::kOr>(type, in, result, n);
  }
  return false;
}

bool accumulate(Reduction op, ElementType type, void* acc, const void* in, std::int64_t n) {
  switch (op) {
    case Reduction::kAdd:
      return accumulateOp<Reduction::kAdd>(type, acc, in, n);
    case Reduction::kMultiply:
      return accumulateOp<Reduction::kMultiply>(type, acc, in, n);
    case Reduction::kMaximum:
      return accumulateOp<Reduction::kMaximum>(type, acc, in, n);
    case Reduction::kMinimum:
      return accumulateOp<Reduction::kMinimum>(type, acc, in, n);
    case Reduction::kAnd:
      return accumulateOp<Reduction::kAnd>(type, acc, in, n);
    case Reduction::kOr:
      return accumulateOp<Reduction::kOr>(type, acc, in, n);
  }
  return false;
}

bool accumulateHalfToFloat(Reduction op, float* acc, const std::uint16_t* in, std::int64_t n) {
  float block[512];
  for (std::int64_t begin = 0; begin < n; begin += 512) {
    const std::int64_t m = n - begin < 512 ? n - begin : 512;
    halfToFloat(in + begin, block, m);
    if (!IPUJAX_ISA_NAMESPACE::accumulate(op, ElementType::kFloat, acc + begin, block, m))
      return false;
  }
  return true;
}

namespace {
template <class T>
void gatherLoop(const T* in, std::int64_t stride, T* out, std::int64_t n) {
  if (stride == 1) {
    std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(T));
  } else if (stride == 0) {
    const T value = n > 0 ? *in : T{};
    for (std::int64_t k = 0; k < n; ++k) out[k] = value;
  } else if (stride == -1) {
    IPUJAX_IVDEP
    for (std::int64_t k = 0; k < n; ++k) out[k] = in[-k];
  } else {
    for (std::int64_t k = 0; k < n; ++k) out[k] = in[k * stride];
  }
}
template <class T>
void scatterLoop(const T* in, T* out, std::int64_t stride, std::int64_t n) {
  if (stride == 1) {
    std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(T));
  } else {
    for (std::int64_t k = 0; k < n; ++k) out[k * stride] = in[k];
  }
}
template <class T>
void transposeLoop(const T* in, std::int64_t in_stride, T* out, std::int64_t out_stride,
                   std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kTile = 64 / sizeof(T) < 16 ? 64 / sizeof(T) : 16;
  for (std::int64_t r = 0; r < rows; r += kTile) {
    const std::int64_t rn = rows - r < kTile ? rows - r : kTile;
    for (std::int64_t c = 0; c < cols; c += kTile) {
      const std::int64_t cn = cols - c < kTile ? cols - c : kTile;
      if (rn == kTile && cn == kTile) {
        T tile[kTile][kTile];
        for (std::int64_t j = 0; j < kTile; ++j)
          for (std::int64_t i = 0; i < kTile; ++i) tile[j][i] = in[(c + j) * in_stride + r + i];
        for (std::int64_t i = 0; i < kTile; ++i)
          for (std::int64_t j = 0; j < kTile; ++j) out[(r + i) * out_stride + c + j] = tile[j][i];
      } else {
        for (std::int64_t i = 0; i < rn; ++i)
          for (std::int64_t j = 0; j < cn; ++j)
            out[(r + i) * out_stride + c + j] = in[(c + j) * in_stride + r + i];
      }
    }
  }
}

/// Calls f with a value of the unsigned type of `bytes`.
template <class F>
void bySize(std::size_t bytes, const F& f) {
  switch (bytes) {
    case 1:
      f(std::uint8_t{});
      break;
    case 2:
      f(std::uint16_t{});
      break;
    case 4:
      f(std::uint32_t{});
      break;
    default:
      f(std::uint64_t{});
      break;
  }
}
}  // namespace

namespace {
/// MurmurHash3's final mix of 32 bits.
IPUJAX_INLINE std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}
}  // namespace

void randomBits(void* out, std::int64_t n, std::uint64_t seed, std::uint64_t first) {
  auto* words = static_cast<std::uint32_t*>(out);
  const auto low = static_cast<std::uint32_t>(seed);
  const auto high = static_cast<std::uint32_t>((seed >> 32) + (first >> 32));
  const auto begin = static_cast<std::uint32_t>(first);
  for (std::int64_t k = 0; k < n; ++k)
    words[k] = mixed(mixed(begin + static_cast<std::uint32_t>(k) + low) ^ high);
}
void fill(void* out, const void* value, std::size_t bytes, std::int64_t n) {
  bySize(bytes, [&](auto zero) {
    using T = decltype(zero);
    T v;
    std::memcpy(&v, value, sizeof(T));
    auto* o = static_cast<T*>(out);
    for (std::int64_t k = 0; k < n; ++k) o[k] = v;
  });
}
void gatherStrided(const void* in, std::int64_t stride, void* out, std::size_t bytes,
                   std::int64_t n) {
  bySize(bytes, [&](auto zero) {
    using T = decltype(zero);
    gatherLoop(static_cast<const T*>(in), stride, static_cast<T*>(out), n);
  });
}
void scatterStrided(const void* in, void* out, std::int64_t stride, std::size_t bytes,
                    std::int64_t n) {
  bySize(bytes, [&](auto zero) {
    using T = decltype(zero);
    scatterLoop(static_cast<const T*>(in), static_cast<T*>(out), stride, n);
  });
}
void transpose2d(const void* in, std::int64_t in_stride, void* out, std::int64_t out_stride,
                 std::int64_t rows, std::int64_t cols, std::size_t bytes) {
  bySize(bytes, [&](auto zero) {
    using T = decltype(zero);
    transposeLoop(static_cast<const T*>(in), in_stride, static_cast<T*>(out), out_stride, rows,
                  cols);
  });
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
