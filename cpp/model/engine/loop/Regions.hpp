#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/expr/ExprProgram.hpp"
#include "engine/image/Image.hpp"
#include "engine/image/Overlap.hpp"

/// Where the operands of a loop's steps lie, and what the steps may be taken for. Internal to
/// engine/loop.
namespace ipujax::engine::loop {

/// A step takes about as long as so many operations on single elements.
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

/// A half's bits are exact only while it is a half: between operations it is held as a float.
bool takesHalfApart(const expr::ExprProgram& program);

/// What an update does with what it finds, where it is one instruction: of floats no minimum, as
/// that of zeros of both signs is either.
std::optional<expr::Op> combinerOf(const std::string& update, ElementType type);

}  // namespace ipujax::engine::loop
