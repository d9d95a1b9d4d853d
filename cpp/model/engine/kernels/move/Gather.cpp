#include <algorithm>
#include <memory>

#include "engine/Errors.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/move/Copy.hpp"
#include "engine/kernels/move/CopyWindows.hpp"
#include "engine/kernels/move/WrappedCopy.hpp"

namespace ipujax::engine {

namespace {

constexpr std::int64_t kParallelBytes = 256 * 1024;
constexpr std::int64_t kBytesPerWindow = 32;  // cost of walking one window, in bytes copied

/// Operands: operand (read), indices (read), out (write); canonical shapes.
class GatherKernel final : public Kernel {
 public:
  explicit GatherKernel(const StepDesc& step)
      : windows_(step.operands[0], step.operands[1], step.operands[2], step.attributes),
        copy_(sizeOf(step.operands[0].type), windows_.shape(), windows_.largeStrides(),
              windows_.smallStrides()),
        element_bytes_(sizeOf(step.operands[0].type)) {}

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const std::int64_t n = windows_.count();
    const std::int64_t each = copy_.bytes() + kBytesPerWindow;
    if (n * each < kParallelBytes || n == 0) return range(p, 0, n);
    if (n == 1) {
      windows_.forEach(p[1], 0, 1, [&](std::int64_t from, std::int64_t to, std::int64_t) {
        copy_.run(context.pool, p[0] + from, p[2] + to);
      });
      return;
    }
    context.pool.parallelFor(n, std::max<std::int64_t>(1, kParallelBytes / 2 / each),
                             [&](std::int64_t begin, std::int64_t end) { range(p, begin, end); });
  }

 private:
  void range(std::span<std::byte* const> p, std::int64_t begin, std::int64_t end) const {
    if (windows_.windowElements() != 1) {
      windows_.forEach(p[1], begin, end, [&](std::int64_t from, std::int64_t to, std::int64_t) {
        copy_.run(p[0] + from, p[2] + to);
      });
      return;
    }
    switch (element_bytes_) {
      case 1:
        return elements<1>(p, begin, end);
      case 2:
        return elements<2>(p, begin, end);
      case 4:
        return elements<4>(p, begin, end);
      default:
        return elements<8>(p, begin, end);
    }
  }

  template <std::size_t kBytes>
  void elements(std::span<std::byte* const> p, std::int64_t begin, std::int64_t end) const {
    const auto move = [in = p[0], out = p[2]](std::int64_t from, std::int64_t to, std::int64_t) {
      std::memcpy(out + to, in + from, kBytes);
    };
    windows_.forEach(p[1], begin, end, move);
  }

  Windows windows_;
  StridedCopy copy_;
  std::size_t element_bytes_;
};

std::unique_ptr<Kernel> makeGather(const StepDesc& step) {
  if (outsideOf(step.attributes) == Outside::kWrap)
    return std::make_unique<WrappedCopyKernel>(step);
  return std::make_unique<GatherKernel>(step);
}

void checkGather(StepCheck& check) {
  check.operands(3);
  const auto from = check.read(0);
  const auto to = check.written(2).hasTypeOf(from);
  if (Windows::check(check, from, check.read(1), to) == Outside::kWrap)
    WrappedCopyKernel::check(check);
}

const RegisterKernel kGather{"popx.gather", makeGather, checkGather, KernelRole::kSlices};
const RegisterKernel kDynamicSlice{"popops.dynamic_slice", makeGather, checkGather,
                                   KernelRole::kSliceOfRow};
const RegisterKernel kRemoteRead{"engine.remote_read", makeGather, checkGather};
const RegisterKernel kMultiSlice{"popops.multi_slice", makeGather, checkGather};

}  // namespace
}  // namespace ipujax::engine
