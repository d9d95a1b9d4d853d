#include <cstring>

#include "engine/kernels/Kernel.hpp"

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

/// Operands: indices, on, off, encoded. T: the bits of one element.
template <class T>
std::unique_ptr<Kernel> makeTyped(const StepDesc& step) {
  const ReadIndex read =
      withInteger(step.operands[0].type, []<class I>(I) -> ReadIndex { return readIndex<I>; });
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
  return withBytes(sizeOf(step.operands[3].type), [&]<class T>(T) { return makeTyped<T>(step); });
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
