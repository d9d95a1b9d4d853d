#include "engine/kernels/map/QuarterLoops.hpp"

#include <algorithm>

#include "engine/Quarter.hpp"
#include "engine/simd/FloatMath.hpp"
#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

namespace math = simd::IPUJAX_ISA_NAMESPACE;

/// A layout's constants in the form that loops need.
template <int kFraction>
struct Constants {
  explicit Constants(std::uint8_t metadata) {
    const QuarterLayout layout(metadata);
    largest = static_cast<float>(layout.largest);
    down = math::floatOf(static_cast<std::uint32_t>(127 - layout.scale) << 23);
    up = math::floatOf(static_cast<std::uint32_t>(127 + layout.scale) << 23);
  }
  static constexpr int kMinExponent = kFraction == 3 ? -7 : -15;
  static constexpr int kCut = 23 - kFraction;  ///< bits of a float's fraction that are dropped
  static constexpr std::int32_t kRebase = (126 + kMinExponent) << kFraction;
  /// Adding it to a value below the normal numbers leaves the rounded units in the lowest bits.
  static constexpr std::uint32_t kMagic =
      static_cast<std::uint32_t>(127 + 23 + kMinExponent - kFraction) << 23;
  static constexpr std::int32_t kLeastNormal = (127 + kMinExponent) << 23;
  float largest, down, up;
};

/// Magnitudes are compared as signed integers, which CPUs have an instruction for.
template <int kFraction>
inline std::uint8_t toByte(float x, const Constants<kFraction>& c, std::int32_t too_large) {
  using C = Constants<kFraction>;
  const auto magnitude = static_cast<std::int32_t>(math::bitsOf(x) & 0x7fffffffu);
  const auto sign = static_cast<std::int32_t>((math::bitsOf(x) >> 24) & 0x80u);
  const float scaled = math::absOf(x) * c.down;
  const std::uint32_t bits = math::bitsOf(scaled);
  const std::uint32_t half = (1u << (C::kCut - 1)) - 1u + ((bits >> C::kCut) & 1u);
  const std::int32_t normal = static_cast<std::int32_t>((bits + half) >> C::kCut) - C::kRebase;
  const auto small =
      static_cast<std::int32_t>(math::bitsOf(scaled + math::floatOf(C::kMagic)) - C::kMagic);
  std::int32_t made = static_cast<std::int32_t>(bits) < C::kLeastNormal ? small : normal;
  // The largest number is 0x7f: values that round beyond it have more bits.
  made = made > 0x7f ? too_large : made;
  // Zero and NaN get no sign: a sign alone is NaN.
  made = (made & 0x7f) == 0 ? made : made | sign;
  return static_cast<std::uint8_t>(magnitude >= 0x7f800000 ? kQuarterNan : made);
}

template <int kFraction>
inline float fromByte(std::uint8_t byte, const Constants<kFraction>& c) {
  using C = Constants<kFraction>;
  const std::uint32_t magnitude = byte & 0x7fu;
  const float normal = math::floatOf((magnitude + C::kRebase) << C::kCut);
  const float small = math::floatOf(C::kMagic | magnitude) - math::floatOf(C::kMagic);
  const float value = (magnitude < (1u << kFraction) ? small : normal) * c.up;
  const float found =
      math::floatOf(math::bitsOf(value) | static_cast<std::uint32_t>(byte & 0x80u) << 24);
  return byte == kQuarterNan ? math::kNan : found;
}

template <class Fill>
inline void withFraction(std::uint8_t metadata, Fill fill) {
  if (metadata & 0x80)
    fill(Constants<3>(metadata));
  else
    fill(Constants<2>(metadata));
}

void fromFloats(const float* in, std::uint8_t* out, std::int64_t n, std::uint8_t metadata,
                bool nan) {
  const std::int32_t too_large = nan ? kQuarterNan : 0x7f;
  withFraction(metadata, [&](auto constants) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = toByte(in[i], constants, too_large);
  });
}

void toFloats(const std::uint8_t* in, float* out, std::int64_t n, std::uint8_t metadata) {
  withFraction(metadata, [&](auto constants) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = fromByte(in[i], constants);
  });
}

/// Calls block(first, count, buffer for floats) over n elements.
template <class Block>
inline void inBlocks(std::int64_t n, Block block) {
  constexpr std::int64_t kBlock = 512;
  alignas(64) float values[kBlock];
  for (std::int64_t at = 0; at < n; at += kBlock) block(at, std::min(kBlock, n - at), values);
}

void fromHalves(const std::uint16_t* in, std::uint8_t* out, std::int64_t n, std::uint8_t metadata,
                bool nan) {
  inBlocks(n, [&](std::int64_t at, std::int64_t count, float* values) {
    simd::halfToFloat(in + at, values, count);
    fromFloats(values, out + at, count, metadata, nan);
  });
}

void toHalves(const std::uint8_t* in, std::uint16_t* out, std::int64_t n, std::uint8_t metadata) {
  inBlocks(n, [&](std::int64_t at, std::int64_t count, float* values) {
    toFloats(in + at, values, count, metadata);
    simd::floatToHalf(values, out + at, count);
  });
}

}  // namespace

extern const QuarterLoops kQuarterLoops;
const QuarterLoops kQuarterLoops = {fromFloats, fromHalves, toFloats, toHalves};

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine
