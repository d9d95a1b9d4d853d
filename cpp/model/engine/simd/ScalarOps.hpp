#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/simd/MapOps.hpp"

/// Operations on single elements in memory as threaded code: each ends with a jump to the next one.
/// Loops of few elements are made of them (engine/loop/ScalarLoop.hpp). A result is also passed on
/// in a register, to save the next operation a load: floats in one, all other types in another.
namespace ipujax::engine {
struct LoopRun;  // engine/loop/LoopKernel.hpp
}

namespace ipujax::engine::simd {

struct ScalarOp {
  using Function = void (*)(const ScalarOp* op, LoopRun* run, std::uint64_t integer, float number);
  Function function = nullptr;
  const std::byte* a = nullptr;  ///< operands, and `out` the result
  const std::byte* b = nullptr;
  const std::byte* c = nullptr;
  std::byte* out = nullptr;
  std::int64_t immediate = 0;
};

/// Ends an operation; compilers make it a jump.
[[gnu::always_inline]] inline void next(const ScalarOp* op, LoopRun* run, std::uint64_t integer = 0,
                                        float number = 0) {
  return op[1].function(op + 1, run, integer, number);
}

/// Take a value from the registers, and put one there.
template <class T>
[[gnu::always_inline]] inline T heldValue(std::uint64_t integer, float number) {
  if constexpr (std::is_same_v<T, float>) return number;
  if constexpr (std::is_same_v<T, double>) return __builtin_bit_cast(double, integer);
  if constexpr (std::is_integral_v<T>) return static_cast<T>(integer);
}
template <class T>
[[gnu::always_inline]] inline void hold(T value, std::uint64_t& integer, float& number) {
  if constexpr (std::is_same_v<T, float>) number = value;
  if constexpr (std::is_same_v<T, double>) integer = __builtin_bit_cast(std::uint64_t, value);
  if constexpr (std::is_integral_v<T>) integer = static_cast<std::make_unsigned_t<T>>(value);
}
/// Which register holds values of a type.
constexpr bool isHeldAsNumber(ElementType type) { return blockType(type) == ElementType::kFloat; }

/// *out = op(*a, *b, *c), bit for bit what findMap's loop gives; `out` may be an operand's memory.
/// Bit i of `held`: operand i is taken from its register. Null if there is no such function, for
/// these held operands or at all; then use that loop for one element.
ScalarOp::Function findScalar(const MapKey& key, unsigned held = 0);

}  // namespace ipujax::engine::simd
