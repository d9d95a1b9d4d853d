#pragma once
#include <cstdint>

#include "engine/ElementType.hpp"
#include "engine/simd/Isa.hpp"

/// Rows of integers of one type as words, and back, one set for each instruction set. Strides in
/// elements; bool is read as 0 or 1, and written as whether the sum is not 0.
namespace ipujax::engine::blas {

struct IntegerRows {
  void (*load)(const void* in, std::int64_t stride, std::int64_t count, std::uint32_t* out);
  void (*loadLong)(const void* in, std::int64_t stride, std::int64_t count, std::uint64_t* out);
  void (*store)(const std::uint32_t* in, void* out, std::int64_t stride, std::int64_t count);
  void (*storeLong)(const std::uint64_t* in, void* out, std::int64_t stride, std::int64_t count);
  /// `count` neighbours along k as pairs; an odd one out is paired with 0.
  void (*loadPairs)(const void* in, std::int64_t stride, std::int64_t count, std::uint32_t* out);
  /// Rows of `count` elements, rows 2i and 2i + 1 as row i of pairs, `out_row` words apart; an odd
  /// one out is paired with zeros.
  void (*pairRows)(const void* in, std::int64_t row, std::int64_t num_rows, std::int64_t stride,
                   std::int64_t count, std::uint32_t* out, std::int64_t out_row);
};

IPUJAX_DECLARE_SIMD(const IntegerRows& integerRows(ElementType type))

/// The loops for this CPU; throws type_error where the type is no integer.
const IntegerRows& rowsOf(ElementType type);

}  // namespace ipujax::engine::blas
