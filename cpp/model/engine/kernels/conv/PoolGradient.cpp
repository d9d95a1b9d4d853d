#include "engine/kernels/conv/PoolGradient.hpp"

#include <algorithm>
#include <cstring>

#include "engine/Half.hpp"
#include "engine/Rank.hpp"
#include "engine/Workspace.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/conv/Window.hpp"
#include "engine/simd/VectorOps.hpp"

/// The kernel "popnn.pool_gradient".
namespace ipujax::engine {
namespace {

/// Computes a pooling's gradient in float, a plane (one batch element and channel) at a time.
/// Operands: result (contiguous), pooled gradient, then for MAX the input and the pooled values.
class PoolGradient final : public Kernel {
 public:
  explicit PoolGradient(const StepDesc& step);
  void run(RunContext& context, std::span<std::byte* const> p) const override;

 private:
  void plane(std::span<std::byte* const> p, std::int64_t index, float* sums) const;
  float valueAt(const std::byte* p, std::int64_t offset) const;
  template <class F>
  void walk(const std::int64_t* output, std::size_t d, std::int64_t in, std::int64_t place,
            const F& f) const;

  PoolingType type_;
  bool scaled_;
  ElementType element_;
  std::vector<WindowDim> field_;              ///< in: the input's, out: the gradient's strides
  std::vector<std::int64_t> pooled_strides_;  ///< of the field, MAX only
  std::vector<std::int64_t> place_strides_;   ///< of the result's field, row-major
  std::int64_t outer_[2] = {1, 1};
  std::int64_t in_outer_[2] = {0, 0};
  std::int64_t gradient_outer_[2] = {0, 0};
  std::int64_t pooled_outer_[2] = {0, 0};
  std::int64_t plane_elements_ = 1;
  std::int64_t outputs_ = 1;
};

PoolGradient::PoolGradient(const StepDesc& step)
    : type_(static_cast<PoolingType>(step.attributes.integer("type"))),
      scaled_(step.attributes.integer("scaled") != 0),
      element_(step.operands[0].type) {
  const auto& result = step.operands[0];
  const auto& gradient = step.operands[1];
  const bool max = type_ == PoolingType::MAX;
  const auto& in = max ? step.operands[2] : result;
  const auto& pooled = max ? step.operands[3] : gradient;
  const auto dims = windowDims(Window::from(step.attributes.integers("window")), in, gradient);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (d < 2) {
      outer_[d] = dims[d].n;
      in_outer_[d] = dims[d].in_stride;
      gradient_outer_[d] = dims[d].out_stride;
      pooled_outer_[d] = pooled.strides[d];
      continue;
    }
    field_.push_back(dims[d]);
    pooled_strides_.push_back(pooled.strides[d]);
    place_strides_.push_back(result.strides[d]);
    plane_elements_ *= dims[d].n;
    outputs_ *= dims[d].m;
  }
}

float PoolGradient::valueAt(const std::byte* p, std::int64_t offset) const {
  if (element_ == ElementType::kHalf) {
    std::uint16_t half;
    std::memcpy(&half, p + offset * 2, sizeof half);
    return halfToFloat(half);
  }
  float value;
  std::memcpy(&value, p + offset * 4, sizeof value);
  return value;
}

/// Calls f(input offset, place in the plane) for every input under one output's kernel.
template <class F>
void PoolGradient::walk(const std::int64_t* output, std::size_t d, std::int64_t in,
                        std::int64_t place, const F& f) const {
  if (d == field_.size()) return f(in, place);
  const WindowDim& dim = field_[d];
  const std::int64_t start = output[d] * dim.stride - dim.low;
  const std::int64_t end = std::min(start + dim.size, dim.n);
  for (std::int64_t i = std::max<std::int64_t>(start, 0); i < end; ++i) {
    walk(output, d + 1, in + i * dim.in_stride, place + i * place_strides_[d], f);
  }
}

void PoolGradient::plane(std::span<std::byte* const> p, std::int64_t index, float* sums) const {
  const std::int64_t batch = index / outer_[1];
  const std::int64_t channel = index % outer_[1];
  const auto base = [&](const std::int64_t* strides) {
    return batch * strides[0] + channel * strides[1];
  };
  std::fill_n(sums, plane_elements_, 0.0f);
  const bool max = type_ == PoolingType::MAX;
  std::int64_t at[kMostRank] = {};
  for (std::int64_t o = 0; o < outputs_; ++o) {
    std::int64_t gradient = base(gradient_outer_);
    std::int64_t pooled = base(pooled_outer_);
    for (std::size_t d = 0; d < field_.size(); ++d) {
      gradient += at[d] * field_[d].out_stride;
      pooled += at[d] * pooled_strides_[d];
    }
    float value = valueAt(p[1], gradient);
    const float best = max ? valueAt(p[3], pooled) : 0;
    const auto counts = [&](std::int64_t in) { return !max || valueAt(p[2], in) == best; };
    if (scaled_ || type_ == PoolingType::AVG) {
      std::int64_t count = 0;
      walk(at, 0, base(in_outer_), 0, [&](std::int64_t in, std::int64_t) { count += counts(in); });
      value /= static_cast<float>(std::max<std::int64_t>(count, 1));
    }
    walk(at, 0, base(in_outer_), 0, [&](std::int64_t in, std::int64_t place) {
      if (counts(in)) sums[place] += value;
    });
    for (std::size_t d = field_.size(); d-- > 0;) {
      if (++at[d] < field_[d].m) break;
      at[d] = 0;
    }
  }
}

void PoolGradient::run(RunContext& context, std::span<std::byte* const> p) const {
  if (plane_elements_ == 0) return;
  context.pool.parallelFor(outer_[0] * outer_[1], 1, [&](std::int64_t begin, std::int64_t end) {
    Workspace workspace;
    float* sums = workspace.get<float>(plane_elements_);
    for (std::int64_t i = begin; i < end; ++i) {
      plane(p, i, sums);
      if (element_ == ElementType::kHalf) {
        simd::floatToHalf(sums, reinterpret_cast<std::uint16_t*>(p[0]) + i * plane_elements_,
                          plane_elements_);
      } else {
        std::memcpy(p[0] + i * plane_elements_ * 4, sums,
                    static_cast<std::size_t>(plane_elements_) * 4);
      }
    }
  });
}

void checkPoolGradient(StepCheck& check) {
  const auto type = static_cast<PoolingType>(check.integer("type", 0, 2));
  check.flag("scaled");
  const auto result = check.written(0).isFloating().isContiguous();
  const auto gradient = check.read(1).hasTypeOf(result);
  if (type == PoolingType::MAX) {
    check.read(2).hasTypeOf(result).hasShapeOf(result);
    check.read(3).hasTypeOf(result).hasShapeOf(gradient);
  }
  check.operands(type == PoolingType::MAX ? 4 : 2);
  check.need(result.rank() >= 2, "a batch and channels");
  const auto window = Window::check(check, result, gradient);
  for (std::size_t d = 0; d < window.rank(); ++d) {
    check.need(window.base_dilations[d] == 1 && window.window_dilations[d] == 1,
               "a window without dilation");
    check.need(d >= 2 || window.isPlain(d, result->shape[d]), "a window over its field alone");
  }
}
const RegisterKernel kPoolGradient{"popnn.pool_gradient", makeKernel<PoolGradient>,
                                   checkPoolGradient};

}  // namespace
}  // namespace ipujax::engine
