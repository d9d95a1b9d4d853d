#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <numbers>
#include <optional>
#include <utility>

#include "engine/Kernel.hpp"
#include "engine/Workspace.hpp"
#include "engine/kernels/FftPlan.hpp"
#include "engine/kernels/MatrixBatch.hpp"

/// The kernel "popx.fft": one dimension after another. The first reads the operand, the others work
/// in place on the result (IRFFT: on a copy). All operands are row-major.
namespace ipujax::engine {

namespace {
using fourier::Lines;
using fourier::Plan;

/// The parts of a complex array, or the real part alone. Swapping them turns FFT into its inverse.
struct In {
  const float* re;
  const float* im;
};
struct Out {
  float* re;
  float* im;
};

class Transform {
 public:
  explicit Transform(const StepDesc& step);
  void run(RunContext& context, std::span<std::byte* const> pointers) const;

 private:
  bool inverse() const { return type_ == FftType::IFFT || type_ == FftType::IRFFT; }
  bool complexIn() const { return type_ != FftType::RFFT; }
  bool complexOut() const { return type_ != FftType::IRFFT; }
  std::int64_t numRows() const { return complex_elements_ / complex_shape_.back(); }

  void alongDim(ThreadPool& pool, std::size_t transformed, In in, Out out) const;
  void realForward(ThreadPool& pool, const float* x, Out out) const;
  void realInverse(ThreadPool& pool, In in, float* x) const;
  void oddForward(ThreadPool& pool, const float* x, Out out) const;
  void oddInverse(ThreadPool& pool, In in, float* x) const;

  FftType type_;
  std::vector<std::int64_t> complex_shape_;  // of the complex side
  std::int64_t complex_elements_ = 1;
  std::size_t num_transformed_;
  std::int64_t length_;                             // of the last dimension of the real side
  std::vector<std::shared_ptr<const Plan>> plans_;  // for each transformed dimension
  std::vector<float> w_re_;  // e^(-2 pi i k / length), for real sides of even length
  std::vector<float> w_im_;
};

Transform::Transform(const StepDesc& step)
    : type_(static_cast<FftType>(step.attributes.integer("type"))) {
  const auto& lengths = step.attributes.integers("lengths");
  complex_shape_ = step.operands[complexIn() ? 0 : 1].shape;
  num_transformed_ = lengths.size();
  length_ = lengths.back();
  for (const auto d : complex_shape_) complex_elements_ *= d;
  if (complex_elements_ == 0 || length_ == 0) return;
  const bool real = !complexIn() || !complexOut();
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const bool halved = real && i + 1 == lengths.size() && length_ % 2 == 0;
    const std::int64_t n = halved ? length_ / 2 : lengths[i];
    const std::int64_t dim = complex_shape_[complex_shape_.size() - lengths.size() + i];
    plans_.push_back(Plan::make(n, complex_elements_ / dim));
  }
  if (!real || length_ % 2 != 0) return;
  for (std::int64_t k = 0; k <= length_ / 2; ++k) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length_);
    w_re_.push_back(static_cast<float>(std::cos(angle)));
    w_im_.push_back(static_cast<float>(-std::sin(angle)));
  }
}

/// Complex lines along one of the transformed dimensions of the complex side.
void Transform::alongDim(ThreadPool& pool, std::size_t transformed, In in, Out out) const {
  const std::size_t dim = complex_shape_.size() - num_transformed_ + transformed;
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < complex_shape_.size(); ++d) inner *= complex_shape_[d];
  const std::int64_t n = complex_shape_[dim];
  const std::int64_t outer = complex_elements_ / (n * inner);
  if (inverse()) {
    std::swap(in.re, in.im);
    std::swap(out.re, out.im);
  }
  const float scale = inverse() ? 1.0f / static_cast<float>(n) : 1.0f;
  plans_[transformed]->run(pool, {in.re,
                                  in.im,
                                  inner,
                                  out.re,
                                  out.im,
                                  inner,
                                  {{outer, n * inner, n * inner}, {inner, 1, 1}},
                                  scale});
}

/// A complex array.
Out temporary(Workspace& workspace, std::int64_t elements) {
  auto* memory = workspace.get<float>(2 * elements);
  return {memory, memory + elements};
}

/// A real line of even length as a complex one of half of it: even elements real, odd imaginary.
void Transform::realForward(ThreadPool& pool, const float* x, Out out) const {
  if (length_ % 2 != 0) return oddForward(pool, x, out);
  const std::int64_t half = length_ / 2;
  const std::int64_t rows = numRows();
  Workspace workspace;
  const Out z = temporary(workspace, rows * half);
  plans_.back()->run(pool, {x, x + 1, 2, z.re, z.im, 1, {{rows, length_, half}}, 1.0f});
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / half);
  pool.parallelFor(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t at = r * (half + 1);
      fourier::passes().unpack(z.re + r * half, z.im + r * half, half, w_re_.data(), w_im_.data(),
                               out.re + at, out.im + at);
    }
  });
}

void Transform::oddForward(ThreadPool& pool, const float* x, Out out) const {
  const std::int64_t kept = length_ / 2 + 1;
  const std::int64_t rows = numRows();
  Workspace workspace;
  const Out z = temporary(workspace, rows * length_);
  plans_.back()->run(pool, {x, nullptr, 1, z.re, z.im, 1, {{rows, length_, length_}}, 1.0f});
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(z.re + r * length_, kept, out.re + r * kept);
    std::copy_n(z.im + r * length_, kept, out.im + r * kept);
  }
}

void Transform::realInverse(ThreadPool& pool, In in, float* x) const {
  if (length_ % 2 != 0) return oddInverse(pool, in, x);
  const std::int64_t half = length_ / 2;
  const std::int64_t rows = numRows();
  Workspace workspace;
  const Out z = temporary(workspace, rows * half);
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / half);
  pool.parallelFor(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t at = r * (half + 1);
      fourier::passes().pack(in.re + at, in.im + at, half, w_re_.data(), w_im_.data(),
                             z.re + r * half, z.im + r * half);
    }
  });
  const float scale = 1.0f / static_cast<float>(half);
  plans_.back()->run(pool, {z.im, z.re, 1, x + 1, x, 2, {{rows, half, length_}}, scale});
}

void Transform::oddInverse(ThreadPool& pool, In in, float* x) const {
  const std::int64_t given = length_ / 2 + 1;
  const std::int64_t rows = numRows();
  Workspace workspace;
  const Out z = temporary(workspace, rows * length_);
  for (std::int64_t r = 0; r < rows; ++r) {
    float* re = z.re + r * length_;
    float* im = z.im + r * length_;
    std::copy_n(in.re + r * given, given, re);
    std::copy_n(in.im + r * given, given, im);
    im[0] = 0.0f;
    for (std::int64_t k = given; k < length_; ++k) {
      re[k] = re[length_ - k];
      im[k] = -im[length_ - k];
    }
  }
  const float scale = 1.0f / static_cast<float>(length_);
  plans_.back()->run(pool, {z.im, z.re, 1, nullptr, x, 1, {{rows, length_, length_}}, scale});
}

void Transform::run(RunContext& context, std::span<std::byte* const> pointers) const {
  if (complex_elements_ == 0 || length_ == 0) return;
  const auto part = [&](std::size_t i) { return reinterpret_cast<float*>(pointers[i]); };
  ThreadPool& pool = context.pool;
  const std::size_t last = num_transformed_ - 1;
  if (type_ == FftType::RFFT) {
    const Out out{part(1), part(2)};
    realForward(pool, part(0), out);
    for (std::size_t i = last; i-- > 0;) alongDim(pool, i, {out.re, out.im}, out);
    return;
  }
  In in{part(0), part(1)};
  if (type_ == FftType::IRFFT) {
    Workspace workspace;
    const Out copy = temporary(workspace, last > 0 ? complex_elements_ : 0);
    for (std::size_t i = 0; i < last; ++i) {
      alongDim(pool, i, in, copy);
      in = {copy.re, copy.im};
    }
    return realInverse(pool, in, part(2));
  }
  const Out out{part(2), part(3)};
  for (std::size_t i = last + 1; i-- > 0;) {
    alongDim(pool, i, in, out);
    in = {out.re, out.im};
  }
}

/// Makes its twiddles at the first run: for a long line that takes longer than compiling the rest
/// of a program, and what is compiled or loaded need not run.
class Fft final : public Kernel {
 public:
  explicit Fft(StepDesc step) : step_(std::move(step)) {}
  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    std::call_once(made_, [this] { transform_.emplace(step_); });
    transform_->run(context, pointers);
  }

 private:
  StepDesc step_;
  mutable std::once_flag made_;
  mutable std::optional<Transform> transform_;  // replicas share it; only read once it is made
};

void checkFft(StepCheck& check) {
  const auto type = static_cast<FftType>(check.integer("type", 0, 3));
  const std::size_t parts_in = type == FftType::RFFT ? 1 : 2;
  const std::size_t parts_out = type == FftType::IRFFT ? 1 : 2;
  check.operands(parts_in + parts_out);
  const auto in = check.read(0);
  const auto out = check.written(parts_in);
  for (std::size_t i = 0; i < parts_in; ++i)
    check.read(i).isOf(ElementType::kFloat).isContiguous().hasShapeOf(in);
  for (std::size_t i = 0; i < parts_out; ++i)
    check.written(parts_in + i).isOf(ElementType::kFloat).isContiguous().hasShapeOf(out);
  const auto& full = type == FftType::IRFFT ? out : in;
  const auto& lengths = check.integers("lengths");
  check.need(!lengths.empty() && static_cast<std::int64_t>(lengths.size()) <= full.rank() &&
                 std::equal(lengths.rbegin(), lengths.rend(), full->shape.rbegin()),
             "the lengths of its last dimensions");
  auto shape = full->shape;
  if (type == FftType::RFFT || type == FftType::IRFFT) shape.back() = shape.back() / 2 + 1;
  (type == FftType::IRFFT ? in : out).hasShape(shape);
}
const RegisterKernel kFft{"popx.fft", makeKernel<Fft>, checkFft};

}  // namespace

}  // namespace ipujax::engine
