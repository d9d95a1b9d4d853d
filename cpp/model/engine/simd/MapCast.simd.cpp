#include <cstring>

#include "engine/simd/Conversions.hpp"
#include "engine/simd/HalfMath.hpp"
#include "engine/simd/MapLoops.hpp"

/// Conversions between types, and of bits.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

template <class From>
MapFn castFrom(ElementType to) {
  if (to == ElementType::kBool) return unary<ToBool<From>, From, std::uint8_t>();
  return withElement(to, []<class To>(To) { return unary<Convert<From, To>, From, To>(); });
}

template <int kBytes>
void copyLoop(Any a, Any, Any, void* out, std::int64_t n, std::int64_t) {
  if (a != out) std::memcpy(out, a, static_cast<std::size_t>(n) * kBytes);
}

struct FromBFloat16 {
  IPUJAX_FN float operator()(std::uint16_t x) const {
    return floatOf(static_cast<std::uint32_t>(x) << 16);
  }
};
struct ToBFloat16 {
  IPUJAX_FN std::uint16_t operator()(float x) const {
    const std::uint32_t bits = bitsOf(x);
    // A NaN that is a bfloat16 keeps its bits, as every number of that type does.
    const std::uint32_t kept = (bits & 0xffffu) == 0 ? bits : bfloat16RoundedBits(x);
    return static_cast<std::uint16_t>(kept >> 16);
  }
};
struct RoundToBFloat16 {
  IPUJAX_FN float operator()(float x) const { return floatOf(bfloat16RoundedBits(x)); }
};

/// Rounds the bits of an IEEE type with kMantissa and kExponent bits to fewer of each; values below
/// the new normal range become zero, above it infinity; NaN stays.
template <int kMantissa, int kExponent>
IPUJAX_INLINE std::uint32_t reduceBits(std::uint32_t x, int exponent, int mantissa) {
  constexpr std::uint32_t kExponentMask = ((1u << kExponent) - 1u) << kMantissa;
  constexpr std::uint32_t kSign = 1u << (kMantissa + kExponent);
  constexpr std::uint32_t kBias = (1u << (kExponent - 1)) - 1u;
  const std::uint32_t original = x;
  if (mantissa < kMantissa) {
    const std::uint32_t last = 1u << (kMantissa - mantissa);
    x += (last >> 1) - 1u + ((x >> (kMantissa - mantissa)) & 1u);
    x &= ~(last - 1u);
  }
  if (exponent < kExponent) {
    const std::uint32_t bias = (1u << (exponent - 1)) - 1u;
    const std::uint32_t at = x & kExponentMask;
    const std::uint32_t sign = x & kSign;
    x = at > ((kBias + bias) << kMantissa) ? (sign | kExponentMask) : x;
    x = at <= ((kBias - bias) << kMantissa) ? sign : x;
  }
  const bool nan = (original & ~kSign) > kExponentMask;
  return nan ? original : x;
}

void reduceFloat(Any a, Any, Any, void* out, std::int64_t n, std::int64_t immediate) {
  const auto* x = static_cast<const float*>(a);
  auto* o = static_cast<float*>(out);
  const int exponent = static_cast<int>(immediate / 256);
  const int mantissa = static_cast<int>(immediate % 256);
  IPUJAX_IVDEP
  for (std::int64_t k = 0; k < n; ++k)
    o[k] = floatOf(reduceBits<23, 8>(bitsOf(x[k]), exponent, mantissa));
}
void reduceHalf(Any a, Any, Any, void* out, std::int64_t n, std::int64_t immediate) {
  const auto* x = static_cast<const float*>(a);
  auto* o = static_cast<float*>(out);
  const int exponent = static_cast<int>(immediate / 256);
  const int mantissa = static_cast<int>(immediate % 256);
  IPUJAX_IVDEP
  for (std::int64_t k = 0; k < n; ++k) {
    const std::uint32_t bits = reduceBits<10, 5>(floatToHalfBits(x[k]), exponent, mantissa);
    o[k] = halfBitsToFloat(static_cast<std::uint16_t>(bits));
  }
}
}  // namespace

MapFn findCast(ElementType from, ElementType to) {
  return withElement(from, [&]<class From>(From) { return castFrom<From>(to); });
}

/// Conversions that look at bits; `operand` may be kHalf for a float block that holds halves.
MapFn findBits(expr::Op op, ElementType operand) {
  using expr::Op;
  switch (op) {
    case Op::kFromBFloat16:
      return unary<FromBFloat16, std::uint16_t, float>();
    case Op::kToBFloat16:
      return unary<ToBFloat16, float, std::uint16_t>();
    case Op::kRoundToBFloat16:
      return unary<RoundToBFloat16, float>();
    case Op::kReducePrecision:
      return operand == ElementType::kHalf ? reduceHalf : reduceFloat;
    case Op::kBitcast:
      return withBytes(sizeOf(operand), []<class T>(T) -> MapFn { return copyLoop<sizeof(T)>; });
    default:
      return nullptr;
  }
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
