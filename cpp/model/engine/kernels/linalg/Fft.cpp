#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/Workspace.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/linalg/FftPlan.hpp"
#include "engine/kernels/linalg/MatrixBatch.hpp"

/// The kernel "popx.fft": transforms one dimension after another. The first pass reads the operand,
/// the others work in place on the result (IRFFT: on a copy). All operands are row-major.
namespace ipujax::engine {

namespace {
using fourier::Plan;

/// The parts of a complex array, or the real part alone. Swapping them turns FFT into its inverse.
template <class T>
struct In {
  const T* re;
  const T* im;
};
template <class T>
struct Out {
  T* re;
  T* im;
};

template <class T>
class Transform {
 public:
  explicit Transform(const StepDesc& step);
  void run(RunContext& context, std::span<std::byte* const> pointers) const;

 private:
  bool inverse() const { return type_ == FftType::IFFT || type_ == FftType::IRFFT; }
  bool complexIn() const { return type_ != FftType::RFFT; }
  bool complexOut() const { return type_ != FftType::IRFFT; }
  std::int64_t numRows() const { return complex_elements_ / complex_shape_.back(); }

  void alongDim(ThreadPool& pool, std::size_t transformed, In<T> in, Out<T> out) const;
  void realForward(ThreadPool& pool, const T* x, Out<T> out) const;
  void realInverse(ThreadPool& pool, In<T> in, T* x) const;
  void oddForward(ThreadPool& pool, const T* x, Out<T> out) const;
  void oddInverse(ThreadPool& pool, In<T> in, T* x) const;

  FftType type_;
  std::vector<std::int64_t> complex_shape_;  // of the complex side
  std::int64_t complex_elements_ = 1;
  std::size_t num_transformed_;
  std::int64_t length_;                                // of the last dimension of the real side
  std::vector<std::shared_ptr<const Plan<T>>> plans_;  // for each transformed dimension
  std::vector<T> w_re_;  // e^(-2 pi i k / length), for real sides of even length
  std::vector<T> w_im_;
};

template <class T>
Transform<T>::Transform(const StepDesc& step)
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
    plans_.push_back(Plan<T>::make(n, complex_elements_ / dim));
  }
  if (!real || length_ % 2 != 0) return;
  for (std::int64_t k = 0; k <= length_ / 2; ++k) {
    const auto [re, im] = fourier::root(k, length_);
    w_re_.push_back(static_cast<T>(re));
    w_im_.push_back(static_cast<T>(im));
  }
}

/// Transforms complex lines along one of the transformed dimensions of the complex side.
template <class T>
void Transform<T>::alongDim(ThreadPool& pool, std::size_t transformed, In<T> in, Out<T> out) const {
  const std::size_t dim = complex_shape_.size() - num_transformed_ + transformed;
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < complex_shape_.size(); ++d) inner *= complex_shape_[d];
  const std::int64_t n = complex_shape_[dim];
  const std::int64_t outer = complex_elements_ / (n * inner);
  if (inverse()) {
    std::swap(in.re, in.im);
    std::swap(out.re, out.im);
  }
  const T scale = inverse() ? 1 / static_cast<T>(n) : 1;
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
template <class T>
Out<T> temporary(Workspace& workspace, std::int64_t elements) {
  auto* memory = workspace.get<T>(2 * elements);
  return {memory, memory + elements};
}

/// Transforms a real line of even length as a complex one of half the length: even elements are
/// its real parts, odd ones imaginary.
template <class T>
void Transform<T>::realForward(ThreadPool& pool, const T* x, Out<T> out) const {
  if (length_ % 2 != 0) return oddForward(pool, x, out);
  const std::int64_t half = length_ / 2;
  const std::int64_t rows = numRows();
  Workspace workspace;
  const Out<T> z = temporary<T>(workspace, rows * half);
  plans_.back()->run(pool, {x, x + 1, 2, z.re, z.im, 1, {{rows, length_, half}}, 1});
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / half);
  pool.parallelFor(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t at = r * (half + 1);
      fourier::passes<T>().unpack(z.re + r * half, z.im + r * half, half, w_re_.data(),
                                  w_im_.data(), out.re + at, out.im + at);
    }
  });
}

template <class T>
void Transform<T>::oddForward(ThreadPool& pool, const T* x, Out<T> out) const {
  const std::int64_t kept = length_ / 2 + 1;
  const std::int64_t rows = numRows();
  Workspace workspace;
  const Out<T> z = temporary<T>(workspace, rows * length_);
  plans_.back()->run(pool, {x, nullptr, 1, z.re, z.im, 1, {{rows, length_, length_}}, 1});
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(z.re + r * length_, kept, out.re + r * kept);
    std::copy_n(z.im + r * length_, kept, out.im + r * kept);
  }
}

template <class T>
void Transform<T>::realInverse(ThreadPool& pool, In<T> in, T* x) const {
  if (length_ % 2 != 0) return oddInverse(pool, in, x);
  const std::int64_t half = length_ / 2;
  const std::int64_t rows = numRows();
  Workspace workspace;
  const Out<T> z = temporary<T>(workspace, rows * half);
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / half);
  pool.parallelFor(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t at = r * (half + 1);
      fourier::passes<T>().pack(in.re + at, in.im + at, half, w_re_.data(), w_im_.data(),
                                z.re + r * half, z.im + r * half);
    }
  });
  const T scale = 1 / static_cast<T>(half);
  plans_.back()->run(pool, {z.im, z.re, 1, x + 1, x, 2, {{rows, half, length_}}, scale});
}

template <class T>
void Transform<T>::oddInverse(ThreadPool& pool, In<T> in, T* x) const {
  const std::int64_t given = length_ / 2 + 1;
  const std::int64_t rows = numRows();
  Workspace workspace;
  const Out<T> z = temporary<T>(workspace, rows * length_);
  for (std::int64_t r = 0; r < rows; ++r) {
    T* re = z.re + r * length_;
    T* im = z.im + r * length_;
    std::copy_n(in.re + r * given, given, re);
    std::copy_n(in.im + r * given, given, im);
    im[0] = 0;
    for (std::int64_t k = given; k < length_; ++k) {
      re[k] = re[length_ - k];
      im[k] = -im[length_ - k];
    }
  }
  const T scale = 1 / static_cast<T>(length_);
  plans_.back()->run(pool, {z.im, z.re, 1, nullptr, x, 1, {{rows, length_, length_}}, scale});
}

template <class T>
void Transform<T>::run(RunContext& context, std::span<std::byte* const> pointers) const {
  if (complex_elements_ == 0 || length_ == 0) return;
  const auto part = [&](std::size_t i) { return reinterpret_cast<T*>(pointers[i]); };
  ThreadPool& pool = context.pool;
  const std::size_t last = num_transformed_ - 1;
  if (type_ == FftType::RFFT) {
    const Out<T> out{part(1), part(2)};
    realForward(pool, part(0), out);
    for (std::size_t i = last; i-- > 0;) alongDim(pool, i, {out.re, out.im}, out);
    return;
  }
  In<T> in{part(0), part(1)};
  if (type_ == FftType::IRFFT) {
    Workspace workspace;
    const Out<T> copy = temporary<T>(workspace, last > 0 ? complex_elements_ : 0);
    for (std::size_t i = 0; i < last; ++i) {
      alongDim(pool, i, in, copy);
      in = {copy.re, copy.im};
    }
    return realInverse(pool, in, part(2));
  }
  const Out<T> out{part(2), part(3)};
  for (std::size_t i = last + 1; i-- > 0;) {
    alongDim(pool, i, in, out);
    in = {out.re, out.im};
  }
}

/// Computes its twiddles in the first run: for a long line that takes longer than compiling the
/// rest of a program, and a program that is compiled or loaded may never run.
template <class T>
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
  mutable std::optional<Transform<T>> transform_;  // replicas share it; only read once it is made
};

std::unique_ptr<Kernel> makeFft(const StepDesc& step) {
  if (step.operands[0].type == ElementType::kDouble) return std::make_unique<Fft<double>>(step);
  return std::make_unique<Fft<float>>(step);
}

void checkFft(StepCheck& check) {
  const auto type = static_cast<FftType>(check.integer("type", 0, 3));
  const std::size_t parts_in = type == FftType::RFFT ? 1 : 2;
  const std::size_t parts_out = type == FftType::IRFFT ? 1 : 2;
  check.operands(parts_in + parts_out);
  const auto in = check.read(0).isOf({ElementType::kFloat, ElementType::kDouble});
  const auto out = check.written(parts_in);
  for (std::size_t i = 0; i < parts_in; ++i)
    check.read(i).hasTypeOf(in).isContiguous().hasShapeOf(in);
  for (std::size_t i = 0; i < parts_out; ++i)
    check.written(parts_in + i).hasTypeOf(in).isContiguous().hasShapeOf(out);
  const auto& full = type == FftType::IRFFT ? out : in;
  const auto& lengths = check.integers("lengths");
  check.need(!lengths.empty() && static_cast<std::int64_t>(lengths.size()) <= full.rank() &&
                 std::equal(lengths.rbegin(), lengths.rend(), full->shape.rbegin()),
             "the lengths of its last dimensions");
  auto shape = full->shape;
  if (type == FftType::RFFT || type == FftType::IRFFT) shape.back() = shape.back() / 2 + 1;
  (type == FftType::IRFFT ? in : out).hasShape(shape);
}
const RegisterKernel kFft{"popx.fft", makeFft, checkFft};

}  // namespace

}  // namespace ipujax::engine
