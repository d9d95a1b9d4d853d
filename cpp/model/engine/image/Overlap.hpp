#pragma once
#include <cstdint>
#include <vector>

#include "engine/image/Step.hpp"

namespace ipujax::engine {

/// Where the elements of an operand lie, in bytes of one address space: the arena, the constants,
/// or one array of the caller's.
struct Footprint {
  struct Dim {
    std::int64_t n = 1;
    std::int64_t stride = 0;  ///< bytes
  };
  std::uint64_t space = 0;
  std::int64_t at = 0;       ///< of the element at index 0, 0, ...
  std::int64_t begin = 0;    ///< of the lowest element
  std::int64_t end = 0;      ///< past the highest element
  std::int64_t element = 1;  ///< bytes
  std::vector<Dim> dims;     ///< those of more than one element
  bool isEmpty() const { return begin == end; }
  /// Sets it to an operand whose element at index 0, 0, ... lies at `place`; reuses memory.
  void assign(const OperandDesc& operand, std::int64_t place);
  void move(std::int64_t by) { at += by, begin += by, end += by; }
};

/// Whether both have the same elements in the same order.
bool isSame(const Footprint& a, const Footprint& b);
/// Whether no byte belongs to both. May be false for disjoint views that interleave in unusual
/// ways; recognises slices, and every n-th elements, of one array.
bool areApart(const Footprint& a, const Footprint& b);
/// Whether no two elements share a byte. May be false as above.
bool areElementsApart(const Footprint& footprint);

}  // namespace ipujax::engine
