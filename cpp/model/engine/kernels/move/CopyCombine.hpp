#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/ElementType.hpp"
#include "engine/Reducer.hpp"
#include "engine/simd/Isa.hpp"

/// dst[i] = op(dst[i], src[i]) on strided runs of one element type: what scatters and multi-updates
/// do with a window. Half is computed in float and rounded once.
namespace ipujax::engine {

/// Strides are in bytes. `scale` is used by scaled sums only: dst + scale * src.
using CombineFn = void (*)(std::byte* dst, const std::byte* src, std::int64_t n,
                           std::int64_t dst_stride, std::int64_t src_stride, double scale);

/// Where one element goes (bytes from the operand's start) and comes from (from the updates').
struct ElementMove {
  std::int64_t dst, src;
};
/// The same for n single elements, in order.
using CombineElementsFn = void (*)(std::byte* dst, const std::byte* src, const ElementMove* moves,
                                   std::int64_t n, double scale);

/// The same for runs of n contiguous elements.
using CombineRunsFn = void (*)(std::byte* dst, const std::byte* src, const ElementMove* moves,
                               std::int64_t count, std::int64_t n, double scale);

/// A run of elements, scattered ones, and scattered runs.
struct Combiner {
  CombineFn run = nullptr;
  CombineElementsFn elements = nullptr;
  CombineRunsFn runs = nullptr;
};

/// `name` is a reducer, "add", "mul", "min", "max", "and" or "or", or "scaled_add". Throws
/// poplar_error for other names, and for types that it cannot combine.
Combiner combinerOf(std::string_view name, ElementType type);

struct CombinerTable {
  Combiner of[reduction::kNumReducers][12];
  Combiner scaled_add[12];
};
IPUJAX_DECLARE_SIMD(const CombinerTable& combinerTable())

}  // namespace ipujax::engine
