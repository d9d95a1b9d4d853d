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

/// Signed or not; no bool.
constexpr bool isInteger(ElementType type) {
  return type >= ElementType::kInt8 && type <= ElementType::kUInt64;
}

const char* nameOf(ElementType type);

}  // namespace ipujax::engine
