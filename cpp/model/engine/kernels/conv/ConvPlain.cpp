#include "engine/kernels/conv/ConvPlain.hpp"

#include <cstring>
#include <type_traits>

#include "engine/ThreadPool.hpp"
#include "engine/blas/Pack.hpp"

namespace ipujax::engine::convolution {
namespace {

/// Reads the element as `To`: double, or a 64-bit integer, whose sums are right modulo any size.
template <class To>
To readAs(const std::byte* data, ElementType type, std::int64_t index) {
  const auto at = [&]<class T>(T) {
    return static_cast<To>(reinterpret_cast<const T*>(data)[index]);
  };
  if (type == ElementType::kDouble) return at(double{});
  if (type == ElementType::kHalf || type == ElementType::kFloat) {
    float value = 0;
    blas::loadRow(data, type, index, 1, 1, &value);
    return static_cast<To>(value);
  }
  return withInteger(type, at);
}

void writeInteger(std::byte* data, ElementType type, std::int64_t index, std::uint64_t value) {
  const std::size_t size = sizeOf(type);
  if (type == ElementType::kBool) value = value != 0;
  std::memcpy(data + static_cast<std::size_t>(index) * size, &value, size);
}

class Plain final : public Kernel {
 public:
  Plain(const StepDesc& step, const std::vector<Axis>& axes)
      : in_(step.operands[0]), weights_(step.operands[1]), out_(step.operands[2]), axes_(axes) {
    wide_ = out_.type == ElementType::kDouble;
    floating_ = wide_ || out_.type == ElementType::kFloat || out_.type == ElementType::kHalf;
  }

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const auto* in = pointers[0];
    const auto* weights = pointers[1];
    auto* out = pointers[2];
    context.pool.parallelFor(out_.numElements(), 256, [&](std::int64_t begin, std::int64_t end) {
      std::vector<std::int64_t> index(out_.shape.size());
      for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t rest = i, offset = 0;
        for (std::size_t d = index.size(); d-- > 0;) {
          index[d] = rest % out_.shape[d];
          rest /= out_.shape[d];
          offset += index[d] * out_.strides[d];
        }
        element(in, weights, out, index, offset);
      }
    });
  }

 private:
  struct Sum {
    double real = 0;
    std::uint64_t integer = 0;
  };

  void element(const std::byte* in, const std::byte* weights, std::byte* out,
               const std::vector<std::int64_t>& index, std::int64_t offset) const {
    Sum sum;
    const std::int64_t in_first = index[0] * in_.strides[0] + index[1] * in_.strides[1];
    const std::int64_t weight_first =
        index[1] * weights_.strides[0] + index[2] * weights_.strides[1];
    for (std::int64_t c = 0; c < in_.shape[2]; ++c)
      axis(in, weights, index, 0, in_first + c * in_.strides[2],
           weight_first + c * weights_.strides[2], sum);
    if (wide_) {
      std::memcpy(out + offset * static_cast<std::int64_t>(sizeof sum.real), &sum.real,
                  sizeof sum.real);
    } else if (floating_) {
      const auto value = static_cast<float>(sum.real);
      blas::storeRow(&value, out, out_.type, offset, 1, 1);
    } else {
      writeInteger(out, out_.type, offset, sum.integer);
    }
  }

  void axis(const std::byte* in, const std::byte* weights, const std::vector<std::int64_t>& index,
            std::size_t a, std::int64_t in_offset, std::int64_t weight_offset, Sum& sum) const {
    if (a == axes_.size()) {
      if (floating_) {
        sum.real += readAs<double>(in, in_.type, in_offset) *
                    readAs<double>(weights, weights_.type, weight_offset);
      } else {
        sum.integer += readAs<std::uint64_t>(in, in_.type, in_offset) *
                       readAs<std::uint64_t>(weights, weights_.type, weight_offset);
      }
      return;
    }
    const Axis& g = axes_[a];
    const std::int64_t o = index[a + 3] - g.output_first;
    if (o < 0 || o >= g.output) return;
    for (std::int64_t k = 0; k < g.kernel; ++k) {
      const std::int64_t position = o * g.stride + k * g.kernel_dilation - g.padding;
      if (position < 0 || position % g.input_dilation != 0) continue;
      const std::int64_t i = position / g.input_dilation;
      if (i >= g.input) continue;
      axis(in, weights, index, a + 1,
           in_offset + (g.input_first + i * g.input_step) * in_.strides[a + 3],
           weight_offset + (g.kernel_first + k * g.kernel_step) * weights_.strides[a + 3], sum);
    }
  }

  OperandDesc in_, weights_, out_;
  std::vector<Axis> axes_;
  bool floating_ = false, wide_ = false;
};

}  // namespace

std::unique_ptr<Kernel> makePlainConvolution(const StepDesc& step, const std::vector<Axis>& axes) {
  return std::make_unique<Plain>(step, axes);
}

}  // namespace ipujax::engine::convolution
