#pragma once
#include <cstddef>
#include <cstdint>

namespace ipujax::engine {

/// Storage type of one element. The compiler lowers bfloat16 and complex before anything reaches a
/// graph. Tables are in this order.
enum class ElementType : std::uint8_t {
  kBool,
  kInt8,
  kUInt8,
  kInt16,
  kUInt16,
  kInt32,
  kUInt32,
  kInt64,
  kUInt64,
  kHalf,
  kFloat,
  kDouble,
};

constexpr std::size_t sizeOf(ElementType type) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kInt8:
    case ElementType::kUInt8:
      return 1;
    case ElementType::kInt16:
    case ElementType::kUInt16:
    case ElementType::kHalf:
      return 2;
    case ElementType::kInt32:
    case ElementType::kUInt32:
    case ElementType::kFloat:
      return 4;
    case ElementType::kInt64:
    case ElementType::kUInt64:
    case ElementType::kDouble:
      return 8;
  }
  return 0;
}

const char* nameOf(ElementType type);

/// function(T{}) with the unsigned integer T of 1, 2, 4 or 8 bytes.
template <class F>
[[gnu::always_inline]] inline decltype(auto) withBytes(std::size_t bytes, const F& function) {
  switch (bytes) {
    case 1:
      return function(std::uint8_t{});
    case 2:
      return function(std::uint16_t{});
    case 4:
      return function(std::uint32_t{});
    default:
      return function(std::uint64_t{});
  }
}

/// function(T{}) with the C++ type of an integer type's elements; a kBool is held as a byte.
template <class F>
[[gnu::always_inline]] inline decltype(auto) withInteger(ElementType type, const F& function) {
  switch (type) {
    case ElementType::kInt8:
      return function(std::int8_t{});
    case ElementType::kInt16:
      return function(std::int16_t{});
    case ElementType::kInt32:
      return function(std::int32_t{});
    case ElementType::kInt64:
      return function(std::int64_t{});
    default:
      return withBytes(sizeOf(type), function);
  }
}

/// The same with any type; a kHalf is its bits.
template <class F>
[[gnu::always_inline]] inline decltype(auto) withElement(ElementType type, const F& function) {
  if (type == ElementType::kFloat) return function(float{});
  if (type == ElementType::kDouble) return function(double{});
  return withInteger(type, function);
}

}  // namespace ipujax::engine
