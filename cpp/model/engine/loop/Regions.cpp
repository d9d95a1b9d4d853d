#include "engine/loop/Regions.hpp"

#include <algorithm>

namespace ipujax::engine::loop {

Region regionOf(const Image& image, const OperandDesc& operand, OperandDesc::Extent extent) {
  const BufferDesc& buffer = image.buffers[operand.buffer];
  const auto bytes = static_cast<std::int64_t>(sizeOf(operand.type));
  Region region;
  std::int64_t base = 0;
  if (buffer.kind == BufferKind::kArena || buffer.kind == BufferKind::kConstant) {
    region.space = buffer.kind == BufferKind::kArena ? 0 : 1;
    base = static_cast<std::int64_t>(buffer.offset);
  } else {
    region.space = 2 + operand.buffer;
  }
  region.begin = base + extent.first * bytes;
  region.end = region.begin + extent.elements * bytes;
  return region;
}

Footprint footprintOf(const Image& image, const OperandDesc& operand) {
  const Region first = regionOf(image, operand, {operand.offset, 1});
  Footprint footprint;
  footprint.assign(operand, first.begin);
  footprint.space = first.space;
  return footprint;
}

std::vector<std::int64_t> elementsOf(const std::vector<std::int64_t>& shape,
                                     const std::vector<std::int64_t>& strides) {
  if (std::ranges::find(shape, 0) != shape.end()) return {};  // its other dimensions may be large
  std::vector<std::int64_t> found{0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::int64_t> inner;
    for (const std::int64_t at : found)
      for (std::int64_t i = 0; i < shape[d]; ++i) inner.push_back(at + i * strides[d]);
    found = std::move(inner);
  }
  return found;
}

bool takesHalfApart(const expr::ExprProgram& program) {
  const auto& instructions = program.instructions();
  return std::any_of(instructions.begin(), instructions.end(), [&](const expr::Instruction& i) {
    return i.op == expr::Op::kBitcast &&
           (i.type == ElementType::kHalf || program.typeOf(i.args[0]) == ElementType::kHalf);
  });
}

std::optional<expr::Op> combinerOf(const std::string& update, ElementType type) {
  using expr::Op;
  const bool is_bool = type == ElementType::kBool;
  if (update == "and") return is_bool ? Op::kLogicalAnd : Op::kBitwiseAnd;
  if (update == "or") return is_bool ? Op::kLogicalOr : Op::kBitwiseOr;
  if (update == "add" && !is_bool) return Op::kAdd;
  if (update == "mul" && !is_bool) return Op::kMultiply;
  if (type == ElementType::kFloat || type == ElementType::kHalf || type == ElementType::kDouble)
    return std::nullopt;
  if (update == "min" && !is_bool) return Op::kMinimum;
  if (update == "max" && !is_bool) return Op::kMaximum;
  return std::nullopt;
}

}  // namespace ipujax::engine::loop
