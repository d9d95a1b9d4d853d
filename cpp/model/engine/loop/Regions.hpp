#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/expr/ExprProgram.hpp"
#include "engine/image/Image.hpp"
#include "engine/image/Overlap.hpp"

/// Where the operands of a loop's steps lie, and which simpler operations the steps are. Internal
/// to engine/loop.
namespace ipujax::engine::loop {

/// A step takes about as long as this many operations on single elements.
constexpr std::size_t kInstructionsOfStep = 32;

/// Bytes [begin, end) of one address space: the arena, the constants, or an array of the caller's.
struct Region {
  std::uint64_t space = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool overlaps(const Region& o) const {
    return space == o.space && begin < o.end && o.begin < end;
  }
  friend bool operator==(const Region&, const Region&) = default;
};
/// From the lowest element of an operand to the highest.
Region regionOf(const Image& image, const OperandDesc& operand, OperandDesc::Extent extent);
inline Region regionOf(const Image& image, const OperandDesc& operand) {
  return regionOf(image, operand, operand.extent());
}
Footprint footprintOf(const Image& image, const OperandDesc& operand);

/// Where each element lies in row-major order, in elements from the one at index 0, 0, ...
std::vector<std::int64_t> elementsOf(const std::vector<std::int64_t>& shape,
                                     const std::vector<std::int64_t>& strides);

/// Whether a program bitcasts halves, whose bits are not exact while they are held as floats.
bool takesHalfApart(const expr::ExprProgram& program);

/// The instruction that combines an update with the old value, if it is a single one. Minima and
/// maxima of floats are not: those of zeros of both signs may be either zero.
std::optional<expr::Op> combinerOf(const std::string& update, ElementType type);

}  // namespace ipujax::engine::loop
