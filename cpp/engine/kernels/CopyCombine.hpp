#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/ElementType.hpp"
#include "engine/simd/Isa.hpp"

/// dst[i] = op(dst[i], src[i]) on strided runs of one element type: what scatters and multi-updates
/// do with a window. Half is computed in float and rounded once.
namespace ipujax::engine {

enum class Combine : std::uint8_t { kAdd, kMultiply, kMinimum, kMaximum, kAnd, kOr, kScaledAdd };
constexpr int kNumCombines = 7;

/// "add", "mul", "min", "max", "and", "or", "scaled_add"; throws poplar_error for another name.
Combine combineByName(std::string_view name);

/// Strides are in bytes. `scale` is used by kScaledAdd only: dst + scale * src.
using CombineFn = void (*)(std::byte* dst, const std::byte* src, std::int64_t n,
                           std::int64_t dst_stride, std::int64_t src_stride, double scale);

/// Where one element goes (bytes from the operand's start) and comes from (from the updates').
struct ElementMove {
  std::int64_t dst, src;
};
/// The same for n single elements, in order.
using CombineElementsFn = void (*)(std::byte* dst, const std::byte* src, const ElementMove* moves,
                                   std::int64_t n, double scale);

/// A run of elements, and scattered ones.
struct Combiner {
  CombineFn run = nullptr;
  CombineElementsFn elements = nullptr;
};

/// Throws poplar_error for and/or of floating-point types and for kDouble.
Combiner combinerOf(Combine op, ElementType type);

namespace simd {
IPUJAX_DECLARE_SIMD(Combiner findCombine(Combine op, ElementType type))
}
}  // namespace ipujax::engine
