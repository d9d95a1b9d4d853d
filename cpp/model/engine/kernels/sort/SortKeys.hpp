#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/Attributes.hpp"
#include "engine/ElementType.hpp"
#include "engine/expr/ExprProgram.hpp"

namespace ipujax::engine {

/// How floating keys compare. Integers and bool have one order.
enum class FloatOrder : std::uint8_t {
  kTotal,      ///< by sign and magnitude: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN
  kCanonical,  ///< -0 == +0, and all NaNs are equal and last: jax.lax.sort's comparator
};

/// One key of a lexicographic order.
struct SortKey {
  std::size_t operand = 0;
  bool descending = false;
  FloatOrder order = FloatOrder::kCanonical;
};

/// The keys of a comparator that is a plain < or > of one operand, or a lexicographic
/// `a0 < b0 | (a0 == b0 & ...)` of several. NaNs, which a plain comparison does not order, come
/// last in the kCanonical order.
std::optional<std::vector<SortKey>> sortKeysOf(const expr::ExprProgram& comparator);

Attributes::Integers toIntegers(const std::vector<SortKey>& keys);
std::vector<SortKey> sortKeysFrom(const Attributes::Integers& integers);

/// out[i] = an unsigned integer that is smaller the earlier x[i * stride] comes.
void mapKeys32(const std::byte* x, std::int64_t stride, ElementType type, const SortKey& key,
               std::uint32_t* out, std::int64_t n);
/// The same for 64-bit types.
void mapKeys64(const std::byte* x, std::int64_t stride, ElementType type, const SortKey& key,
               std::uint64_t* out, std::int64_t n);

/// Sorts by the `bits` bits above `shift`; entries that agree there keep their order. `scratch`
/// has n entries.
void radixSort(std::uint64_t* values, std::uint64_t* scratch, std::int64_t n, int shift, int bits);

}  // namespace ipujax::engine
