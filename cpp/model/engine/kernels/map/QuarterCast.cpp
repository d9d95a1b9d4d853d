#include <algorithm>

#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/map/QuarterLoops.hpp"

/// The kernels "popops.cast_to_quarter" (source, metadata, quarters) and
/// "popops.cast_from_quarter" (quarters, metadata, result), over row-major arrays.
namespace ipujax::engine {
namespace {

constexpr std::int64_t kPiece = 4096;
constexpr std::int64_t kParallel = 16;  // pieces

/// Calls loop(first element, count) over n elements.
template <class Loop>
void inPieces(RunContext& context, std::int64_t n, Loop loop) {
  context.pool.parallelFor((n + kPiece - 1) / kPiece, kParallel,
                           [&](std::int64_t begin, std::int64_t end) {
                             loop(begin * kPiece, std::min(end * kPiece, n) - begin * kPiece);
                           });
}

std::unique_ptr<Kernel> makeToQuarter(const StepDesc& step) {
  const bool nan = step.attributes.integer("nan_on_overflow") != 0;
  return kernelOf([nan, type = step.operands[0].type, n = step.operands[0].numElements()](
                      RunContext& context, std::span<std::byte* const> p) {
    const auto metadata = std::to_integer<std::uint8_t>(*p[1]);
    const QuarterLoops& loops = quarterLoops();
    inPieces(context, n, [&](std::int64_t at, std::int64_t count) {
      auto* out = reinterpret_cast<std::uint8_t*>(p[2]) + at;
      if (type == ElementType::kFloat)
        loops.from_floats(reinterpret_cast<const float*>(p[0]) + at, out, count, metadata, nan);
      else
        loops.from_halves(reinterpret_cast<const std::uint16_t*>(p[0]) + at, out, count, metadata,
                          nan);
    });
  });
}

std::unique_ptr<Kernel> makeFromQuarter(const StepDesc& step) {
  return kernelOf([type = step.operands[2].type, n = step.operands[2].numElements()](
                      RunContext& context, std::span<std::byte* const> p) {
    const auto metadata = std::to_integer<std::uint8_t>(*p[1]);
    const QuarterLoops& loops = quarterLoops();
    inPieces(context, n, [&](std::int64_t at, std::int64_t count) {
      const auto* in = reinterpret_cast<const std::uint8_t*>(p[0]) + at;
      if (type == ElementType::kFloat)
        loops.to_floats(in, reinterpret_cast<float*>(p[2]) + at, count, metadata);
      else
        loops.to_halves(in, reinterpret_cast<std::uint16_t*>(p[2]) + at, count, metadata);
    });
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
