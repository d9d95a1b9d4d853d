#include <cstring>

#include "engine/Kernel.hpp"

/// The kernel "popops.one_hot".
namespace ipujax::engine {
namespace {

template <class I>
std::int64_t readIndex(const std::byte* p) {
  I value;
  std::memcpy(&value, p, sizeof(I));
  return static_cast<std::int64_t>(value);  // an unsigned mask becomes negative or too large
}

using ReadIndex = std::int64_t (*)(const std::byte*);

ReadIndex indexReader(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
      return readIndex<std::int8_t>;
    case ElementType::kUInt8:
      return readIndex<std::uint8_t>;
    case ElementType::kInt16:
      return readIndex<std::int16_t>;
    case ElementType::kUInt16:
      return readIndex<std::uint16_t>;
    case ElementType::kInt32:
      return readIndex<std::int32_t>;
    case ElementType::kUInt32:
      return readIndex<std::uint32_t>;
    case ElementType::kInt64:
      return readIndex<std::int64_t>;
    case ElementType::kUInt64:
      return readIndex<std::uint64_t>;
    default:
      return nullptr;
  }
}

/// Operands: indices, on, off, encoded. T: the bits of one element.
template <class T>
std::unique_ptr<Kernel> makeTyped(const StepDesc& step) {
  const ReadIndex read = indexReader(step.operands[0].type);
  const auto rows = step.operands[3].shape[0];
  const auto columns = step.operands[3].shape[1];
  const auto index =
      step.operands[0].strides[0] * static_cast<std::int64_t>(sizeOf(step.operands[0].type));
  const auto row = step.operands[3].strides[0];
  const auto column = step.operands[3].strides[1];
  return kernelOf([=](RunContext& context, std::span<std::byte* const> p) {
    const T on = *reinterpret_cast<const T*>(p[1]);
    const T off = *reinterpret_cast<const T*>(p[2]);
    auto* out = reinterpret_cast<T*>(p[3]);
    const std::int64_t grain = 1 + 65536 / (columns + 1);
    context.pool.parallelFor(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) out[i * row + j * column] = off;
        const std::int64_t at = read(p[0] + i * index);
        if (at >= 0 && at < columns) out[i * row + at * column] = on;
      }
    });
  });
}

std::unique_ptr<Kernel> makeOneHot(const StepDesc& step) {
  switch (sizeOf(step.operands[3].type)) {
    case 1:
      return makeTyped<std::uint8_t>(step);
    case 2:
      return makeTyped<std::uint16_t>(step);
    case 4:
      return makeTyped<std::uint32_t>(step);
    default:
      return makeTyped<std::uint64_t>(step);
  }
}

void checkOneHot(StepCheck& check) {
  check.operands(4);
  const auto encoded = check.written(3).hasRank(2);
  check.read(0).isInteger().hasShape({&encoded->shape[0], 1});
  check.read(1).isOne().hasTypeOf(encoded);
  check.read(2).isOne().hasTypeOf(encoded);
}

const RegisterKernel kOneHot{"popops.one_hot", makeOneHot, checkOneHot};

}  // namespace
}  // namespace ipujax::engine
