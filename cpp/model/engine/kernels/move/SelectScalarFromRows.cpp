#include "engine/kernels/Kernel.hpp"

/// The kernel "popops.select_scalar_from_rows".
namespace ipujax::engine {
namespace {

constexpr std::uint32_t kMaskedLabel = ~0u;  // popops: EncodingConstants.hpp

/// T: the bits of one element; zero is 0 and `nan` the bits of a NaN.
template <class T>
std::unique_ptr<Kernel> makeTyped(const StepDesc& step, T nan) {
  const auto rows = step.operands[0].shape[0];
  const auto columns = static_cast<std::uint32_t>(step.operands[0].shape[1]);
  const auto row = step.operands[0].strides[0];
  const auto column = step.operands[0].strides[1];
  const auto index = step.operands[1].strides[0];
  const auto to = step.operands[2].strides[0];
  return kernelOf([=](RunContext&, std::span<std::byte* const> p) {
    const auto* params = reinterpret_cast<const T*>(p[0]);
    const auto* indices = reinterpret_cast<const std::uint32_t*>(p[1]);
    auto* out = reinterpret_cast<T*>(p[2]);
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::uint32_t at = indices[i * index];
      out[i * to] = at == kMaskedLabel ? T{0} : at < columns ? params[i * row + at * column] : nan;
    }
  });
}

std::unique_ptr<Kernel> makeSelect(const StepDesc& step) {
  if (sizeOf(step.operands[0].type) == 4) return makeTyped<std::uint32_t>(step, 0x7fc00000u);
  return makeTyped<std::uint16_t>(step, 0x7e00u);
}

void checkSelect(StepCheck& check) {
  check.operands(3);
  const auto params = check.read(0).isFloating().hasRank(2);
  check.read(1).isInteger().isOfBytes(4).hasShape({&params->shape[0], 1});
  check.written(2).hasTypeOf(params).hasShape({&params->shape[0], 1});
}

const RegisterKernel kSelect{"popops.select_scalar_from_rows", makeSelect, checkSelect};

}  // namespace
}  // namespace ipujax::engine
