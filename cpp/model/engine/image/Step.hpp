#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/Attributes.hpp"
#include "engine/Cost.hpp"
#include "engine/ElementType.hpp"

namespace ipujax::engine {

/// Row-major with no gaps; dims of size 1 are ignored, and empty arrays are always row-major.
bool isRowMajor(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);

enum class Access : std::uint8_t { kRead, kWrite, kReadWrite };

/// A strided view of one buffer, as a kernel sees it. Strides are in elements, may be 0 (broadcast)
/// or negative (reverse). The kernel gets a pointer to the element at index 0, 0, ...
///
/// Only its functions tell how its elements lie in memory; no other code derives this from strides:
/// a broadcast has fewer elements in memory than in its shape.
struct OperandDesc {
  std::uint32_t buffer = 0;
  ElementType type = ElementType::kFloat;
  Access access = Access::kRead;
  std::int64_t offset = 0;  ///< elements from the start of the buffer
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;

  std::int64_t numElements() const {
    std::int64_t n = 1;
    for (auto d : shape) n *= d;
    return n;
  }
  bool isContiguous() const;  ///< row-major with no gaps (dims of size 1 are ignored)
  bool isSingle() const;      ///< all indices name one element; false if empty
  /// Contiguous or single: the only views known to mechanisms that walk operands along memory.
  bool isContiguousOrSingle() const { return isContiguous() || isSingle(); }
  /// Its lowest element in the buffer, and the number of elements from there to its highest one.
  struct Extent {
    std::int64_t first = 0;
    std::int64_t elements = 0;
  };
  Extent extent() const;
  /// The stride of dimensions [begin, end) walked as one, or nothing if they are not one run.
  std::optional<std::int64_t> strideOf(std::size_t begin, std::size_t end) const;
};

/// One unit of work of a program: which kernel, on which operands, with which parameters, and what
/// it costs on the IPU. `in_place` lists (read operand, written operand) pairs that may share
/// memory.
struct StepDesc {
  std::string kernel;
  std::vector<OperandDesc> operands;
  Attributes attributes;
  Cost cost;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> in_place;
  std::uint32_t debug = 0;      ///< index into the image's table of names and source lines
  std::vector<StepDesc> inner;  ///< run by an engine.rows, see engine/kernels/reduce/Rows.cpp
};

}  // namespace ipujax::engine
