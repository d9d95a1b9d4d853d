#pragma once
#include "engine/simd/FloatMath.hpp"

/// Half and bfloat16 conversions of single values, branch-free. Included by *.simd.cpp only.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {

IPUJAX_INLINE float halfBitsToFloat(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  const std::uint32_t body = static_cast<std::uint32_t>(h & 0x7fffu) << 13;
  // Multiplying by 2^112 rebases the exponent and makes denormals normal.
  const float scaled = floatOf(body) * 5.192296858534828e33f;
  const std::uint32_t finite = bitsOf(scaled);
  const std::uint32_t special = body | 0x7f800000u;  // infinity, NaN
  return floatOf(sign | ((h & 0x7c00u) == 0x7c00u ? special : finite));
}

IPUJAX_INLINE std::uint16_t floatToHalfBits(float x) {
  const std::uint32_t bits = bitsOf(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t a = bits & 0x7fffffffu;
  // Normal results: rebase the exponent, round to nearest even in the 13 dropped bits.
  const std::uint32_t normal = (a - (112u << 23) + 0x0fffu + ((a >> 13) & 1u)) >> 13;
  // Denormal results: adding 0.5 leaves the value in the low bits, rounded by the addition.
  const std::uint32_t denormal = bitsOf(floatOf(a) + 0.5f) - 0x3f000000u;
  std::uint32_t result = a < 0x38800000u ? denormal : normal;
  result = a >= 0x477ff000u ? 0x7c00u : result;  // 65520 and above
  result = a > 0x7f800000u ? (0x7e00u | ((a >> 13) & 0x3ffu)) : result;
  return static_cast<std::uint16_t>(sign | result);
}

IPUJAX_INLINE float roundedToHalf(float x) { return halfBitsToFloat(floatToHalfBits(x)); }

IPUJAX_INLINE std::uint32_t bfloat16RoundedBits(float x) {
  const std::uint32_t bits = bitsOf(x);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
  const std::uint32_t nan = (bits & 0xffff0000u) | 0x00400000u;
  return x != x ? nan : rounded;
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
