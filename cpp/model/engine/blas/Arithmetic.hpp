#pragma once
#include <cstdint>
#include <type_traits>

#include "engine/ElementType.hpp"

/// How products are multiplied and summed. Operands are packed as words; a word holds `kPerWord`
/// neighbours along k. Integers wrap: sums are exact modulo 2^32 or 2^64, so unsigned words work
/// for signed elements too.
namespace ipujax::engine::blas {

/// float and half, summed in float.
struct Floats {
  using Word = float;
  using Sums = Floats;
  static constexpr std::int64_t kPerWord = 1;
};
struct Doubles {
  using Word = double;
  using Sums = Doubles;
  static constexpr std::int64_t kPerWord = 1;
};
struct Ints {
  using Word = std::uint32_t;
  using Sums = Ints;
  static constexpr std::int64_t kPerWord = 1;
};
struct LongInts {
  using Word = std::uint64_t;
  using Sums = LongInts;
  static constexpr std::int64_t kPerWord = 1;
};
/// Two signed 16-bit integers in a word, the earlier in its low half: one instruction multiplies
/// both and adds the products in 32 bits.
struct ShortPairs {
  using Word = std::uint32_t;
  using Sums = Ints;  ///< how results and addends are read
  static constexpr std::int64_t kPerWord = 2;
};

constexpr bool isInteger(ElementType type) {
  return type != ElementType::kHalf && type != ElementType::kFloat && type != ElementType::kDouble;
}

template <class M>
using Word = typename M::Word;

/// Columns of one packed panel of the right operand: 64 bytes.
template <class M>
inline constexpr std::int64_t kPanel = 64 / static_cast<std::int64_t>(sizeof(Word<M>));

template <class M>
constexpr std::int64_t wordsOf(std::int64_t count) {
  return (count + M::kPerWord - 1) / M::kPerWord;
}

/// Whether elements in memory have the format of this arithmetic's sums.
template <class M>
constexpr bool isSum(ElementType type) {
  using Sum = Word<typename M::Sums>;
  return isInteger(type) == std::is_integral_v<Sum> && sizeOf(type) == sizeof(Sum);
}

/// Whether elements in memory have the format of words: then operands need no packing.
template <class M>
constexpr bool isWord(ElementType type) {
  return M::kPerWord == 1 && isSum<M>(type);
}

enum class Arithmetic : std::uint8_t { kFloats, kDoubles, kInts, kLongInts, kShortPairs };

/// The fastest arithmetic that is exact for a product of `a` and `b` summed into `out`. Throws
/// type_error for a mix of floats and integers, or of double and other types.
Arithmetic arithmeticOf(ElementType a, ElementType b, ElementType out);

/// function(Floats{}) and so on.
template <class F>
void withArithmetic(Arithmetic arithmetic, F&& function) {
  switch (arithmetic) {
    case Arithmetic::kFloats:
      return function(Floats{});
    case Arithmetic::kDoubles:
      return function(Doubles{});
    case Arithmetic::kInts:
      return function(Ints{});
    case Arithmetic::kLongInts:
      return function(LongInts{});
    case Arithmetic::kShortPairs:
      return function(ShortPairs{});
  }
}

}  // namespace ipujax::engine::blas
