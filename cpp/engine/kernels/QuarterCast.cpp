#include <cstring>

#include "engine/Half.hpp"
#include "engine/Kernel.hpp"
#include "engine/Quarter.hpp"

/// The kernels "popops.cast_to_quarter" (source, metadata, quarters) and
/// "popops.cast_from_quarter" (quarters, metadata, result), over row-major arrays.
namespace ipujax::engine {
namespace {

double load(ElementType type, const std::byte* p, std::size_t i) {
  if (type == ElementType::kFloat) {
    float value = 0;
    std::memcpy(&value, p + 4 * i, sizeof value);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, p + 2 * i, sizeof bits);
  return halfToFloat(bits);
}

void store(ElementType type, std::byte* p, std::size_t i, double value) {
  const auto real = static_cast<float>(value);
  if (type == ElementType::kFloat) {
    std::memcpy(p + 4 * i, &real, sizeof real);
    return;
  }
  const std::uint16_t bits = floatToHalf(real);
  std::memcpy(p + 2 * i, &bits, sizeof bits);
}

std::unique_ptr<Kernel> makeToQuarter(const StepDesc& step) {
  const bool nan = step.attributes.integer("nan_on_overflow") != 0;
  return kernelOf([nan, type = step.operands[0].type,
                   n = static_cast<std::size_t>(step.operands[0].numElements())](
                      RunContext&, std::span<std::byte* const> p) {
    const auto metadata = std::to_integer<std::uint8_t>(*p[1]);
    for (std::size_t i = 0; i < n; ++i) {
      const double value = load(type, p[0], i);
      p[2][i] = std::byte{toQuarter(metadata, value, nan || std::isinf(value))};
    }
  });
}

std::unique_ptr<Kernel> makeFromQuarter(const StepDesc& step) {
  return kernelOf(
      [type = step.operands[2].type, n = static_cast<std::size_t>(step.operands[2].numElements())](
          RunContext&, std::span<std::byte* const> p) {
        const auto metadata = std::to_integer<std::uint8_t>(*p[1]);
        for (std::size_t i = 0; i < n; ++i)
          store(type, p[2], i, fromQuarter(metadata, std::to_integer<std::uint8_t>(p[0][i])));
      });
}

void checkToQuarter(StepCheck& check) {
  check.operands(3);
  check.flag("nan_on_overflow");
  const auto in = check.read(0).isFloating().isContiguous();
  check.read(1).isOfBytes(1).isOne();
  check.written(2).isOfBytes(1).isContiguous().hasShapeOf(in);
}

void checkFromQuarter(StepCheck& check) {
  check.operands(3);
  const auto in = check.read(0).isOfBytes(1).isContiguous();
  check.read(1).isOfBytes(1).isOne();
  check.written(2).isFloating().isContiguous().hasShapeOf(in);
}

const RegisterKernel kToQuarter{"popops.cast_to_quarter", makeToQuarter, checkToQuarter};
const RegisterKernel kFromQuarter{"popops.cast_from_quarter", makeFromQuarter, checkFromQuarter};

}  // namespace
}  // namespace ipujax::engine
