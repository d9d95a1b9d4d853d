#include "engine/kernels/move/Turn.hpp"

#include <algorithm>
#include <cstring>

#include "engine/kernels/move/CopyWindows.hpp"

namespace ipujax::engine {

TurnKernel::TurnKernel(const StepDesc& step)
    : num_rows_(step.operands.size() - kFirstRow),
      wraps_(outsideOf(step.attributes) == Outside::kWrap) {
  const OperandDesc& newest = step.operands[kNewest];
  if (newest.access == Access::kRead)
    copy_.emplace(sizeOf(newest.type), newest.shape, newest.strides,
                  step.operands[kOldest].strides);
}

std::size_t TurnKernel::rowAt(std::span<std::byte* const> pointers) const {
  std::uint32_t place = 0;
  std::memcpy(&place, pointers[kPlace], sizeof(place));
  return kFirstRow + (wraps_ ? place % num_rows_ : std::min<std::size_t>(place, num_rows_ - 1));
}

void TurnKernel::run(RunContext& context, std::span<std::byte* const> pointers) const {
  if (copy_) copy_->run(context.pool, pointers[kNewest], pointers[rowAt(pointers)]);
}

std::vector<bool> turningBuffers(const Image& image) {
  std::vector<bool> turning(image.buffers.size(), false);
  for (const StepDesc& step : image.steps) {
    if (step.kernel != TurnKernel::kName) continue;
    for (const OperandDesc& operand : step.operands)
      if (operand.access != Access::kRead) turning[operand.buffer] = true;
  }
  return turning;
}

namespace {

/// Checks that the operand is a whole buffer of the arena, row-major.
void checkExchanged(const StepCheck& check, const OperandCheck& operand,
                    const OperandCheck& oldest) {
  operand.isContiguous().hasTypeOf(oldest).hasShapeOf(oldest);
  const BufferDesc& buffer = check.image().buffers[operand->buffer];
  const auto bytes = static_cast<std::uint64_t>(operand->numElements()) * sizeOf(operand->type);
  check.need(buffer.kind == BufferKind::kArena && operand->offset == 0 && buffer.bytes == bytes,
             "whole buffers of the arena to exchange");
}

void checkTurn(StepCheck& check) {
  check.need(check.numOperands() > TurnKernel::kFirstRow, "a place, two values and rows");
  check.integer("clamp", 1, 2);
  check.read(TurnKernel::kPlace).isOf(ElementType::kUInt32).isOne();
  const auto oldest = check.written(TurnKernel::kOldest);
  checkExchanged(check, oldest, oldest);
  const auto newest = check.anyAccess(TurnKernel::kNewest).hasTypeOf(oldest).hasShapeOf(oldest);
  if (newest->access != Access::kRead)
    checkExchanged(check, check.updated(TurnKernel::kNewest), oldest);
  for (std::size_t i = TurnKernel::kFirstRow; i < check.numOperands(); ++i)
    checkExchanged(check, check.updated(i), oldest);
}

const RegisterKernel kTurn{TurnKernel::kName, makeKernel<TurnKernel>, checkTurn};

}  // namespace
}  // namespace ipujax::engine
