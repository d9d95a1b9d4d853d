#include "engine/Half.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/reduce/ReduceLoops.hpp"
#include "engine/simd/VectorOps.hpp"

/// The kernel "popops.iota": numbers that count up along one dimension.
namespace ipujax::engine {
namespace {

using reduction::LoopDim;
using reduction::Odometer;

template <class T>
void fillLine(std::byte* out, std::int64_t stride, std::int64_t start, std::int64_t n) {
  T* values = reinterpret_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) values[i * stride] = static_cast<T>(start + i);
}

void fillHalfLine(std::byte* out, std::int64_t stride, std::int64_t start, std::int64_t n) {
  std::uint16_t* values = reinterpret_cast<std::uint16_t*>(out);
  for (std::int64_t i = 0; i < n; ++i) {
    values[i * stride] = floatToHalf(static_cast<float>(start + i));
  }
}

using Line = void (*)(std::byte*, std::int64_t, std::int64_t, std::int64_t);

Line lineOf(ElementType type) {
  if (type == ElementType::kFloat) return fillLine<float>;
  if (type == ElementType::kHalf) return fillHalfLine;
  return withBytes(sizeOf(type), []<class T>(T) -> Line { return fillLine<T>; });
}

std::unique_ptr<Kernel> makeIota(const StepDesc& step) {
  const auto& out = step.operands[0];
  const auto dim = static_cast<std::size_t>(step.attributes.integer("dim"));
  const std::int64_t start = step.attributes.integer("start");
  std::vector<LoopDim> others;
  for (std::size_t d = 0; d < out.shape.size(); ++d) {
    if (d != dim) others.push_back({out.shape[d], 0, out.strides[d]});
  }
  return kernelOf([others, start, line = lineOf(out.type), n = out.shape[dim],
                   stride = out.strides[dim], bytes = static_cast<std::int64_t>(sizeOf(out.type))](
                      RunContext&, std::span<std::byte* const> pointers) {
    const std::int64_t lines = reduction::volumeOf(others);
    if (lines == 0) return;
    Odometer at(others, 0);
    for (std::int64_t i = 0; i < lines; ++i, at.next()) {
      line(pointers[0] + at.out * bytes, stride, start, n);
    }
  });
}

void checkIota(StepCheck& check) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  check.operands(1);
  check.integer("dim", 0, check.written(0).rank() - 1);
  check.integer("start", -kMost, kMost);
}
const RegisterKernel kIota{"popops.iota", makeIota, checkIota};

}  // namespace
}  // namespace ipujax::engine
