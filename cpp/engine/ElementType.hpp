#pragma once
#include <cstddef>
#include <cstdint>

namespace ipujax::engine {

/// Storage type of one element. bfloat16 and complex have no place here: the compiler makes them
/// legal before anything reaches a graph.
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

/// fn(T()), T: the unsigned integer of so many bytes.
template <class F>
constexpr auto withWord(std::size_t bytes, const F& fn) {
  switch (bytes) {
    case 1:
      return fn(std::uint8_t{});
    case 2:
      return fn(std::uint16_t{});
    case 4:
      return fn(std::uint32_t{});
    default:
      return fn(std::uint64_t{});
  }
}

/// fn(T()), T: the type of an integer, or std::uint8_t of a bool.
template <class F>
constexpr auto withInteger(ElementType type, const F& fn) {
  switch (type) {
    case ElementType::kInt8:
      return fn(std::int8_t{});
    case ElementType::kInt16:
      return fn(std::int16_t{});
    case ElementType::kInt32:
      return fn(std::int32_t{});
    case ElementType::kInt64:
      return fn(std::int64_t{});
    default:
      return withWord(sizeOf(type), fn);
  }
}

const char* nameOf(ElementType type);

}  // namespace ipujax::engine
