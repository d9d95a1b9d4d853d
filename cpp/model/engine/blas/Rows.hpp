#pragma once
#include <cstdint>

#include "engine/ElementType.hpp"
#include "engine/simd/Isa.hpp"

/// Converts rows of integers of one type to words and back, one set for each instruction set.
/// Strides are in elements; a bool is read as 0 or 1, and written as whether the sum is not 0.
namespace ipujax::engine::blas {

struct IntegerRows {
  void (*load)(const void* in, std::int64_t stride, std::int64_t count, std::uint32_t* out);
  void (*loadLong)(const void* in, std::int64_t stride, std::int64_t count, std::uint64_t* out);
  void (*store)(const std::uint32_t* in, void* out, std::int64_t stride, std::int64_t count);
  void (*storeLong)(const std::uint64_t* in, void* out, std::int64_t stride, std::int64_t count);
  /// Loads `count` neighbours along k as pairs; pairs the last of an odd number with 0.
  void (*loadPairs)(const void* in, std::int64_t stride, std::int64_t count, std::uint32_t* out);
  /// Loads rows 2i and 2i + 1, of `count` elements, as row i of pairs, `out_row` words apart; pairs
  /// the last of an odd number with zeros.
  void (*pairRows)(const void* in, std::int64_t row, std::int64_t num_rows, std::int64_t stride,
                   std::int64_t count, std::uint32_t* out, std::int64_t out_row);
};

IPUJAX_DECLARE_SIMD(const IntegerRows& integerRows(ElementType type))

/// The loops for this CPU; throws type_error if the type is not an integer.
const IntegerRows& rowsOf(ElementType type);

}  // namespace ipujax::engine::blas
