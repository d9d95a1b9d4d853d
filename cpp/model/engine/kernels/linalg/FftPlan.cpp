#include "engine/kernels/linalg/FftPlan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "engine/LoopNest.hpp"
#include "engine/Workspace.hpp"
#include "engine/simd/Transpose.hpp"

namespace ipujax::engine::fourier {

/// Computed from the mirrored angle in the first eighth of the circle: larger angles have larger
/// rounding errors.
std::pair<double, double> root(std::int64_t k, std::int64_t n) {
  k %= n;
  if (2 * k > n) {
    const auto [re, im] = root(n - k, n);
    return {re, -im};
  }
  if (4 * k > n) {
    const auto [re, im] = root(n - 2 * k, 2 * n);
    return {-re, im};
  }
  if (8 * k > n) {
    const auto [re, im] = root(n - 4 * k, 4 * n);
    return {-im, -re};
  }
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

namespace {

/// A block of this length and its copy fill half an L2 cache.
template <class T>
constexpr std::int64_t kLongestBlock = 4096 / sizeof(T);

/// Copies up to sixteen lines of n elements: element j of line b is at j * stride + b * spacing.
/// Inlined, since one side always has the strides of a block, [j][b].
template <class T>
[[gnu::always_inline]] inline void copyLines(const T* from, std::int64_t from_stride,
                                             std::int64_t from_spacing, T* to,
                                             std::int64_t to_stride, std::int64_t to_spacing,
                                             std::int64_t count, std::int64_t n) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  const auto transpose = [&](std::int64_t rows, std::int64_t columns, std::int64_t from_column,
                             std::int64_t to_row) {
    simd::copyKernels().transpose[std::bit_width(sizeof(T)) - 1](
        reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), rows, columns,
        from_column * kBytes, to_row * kBytes);
  };
  if (from_spacing == 1 && to_spacing == 1 && count == kLanes) {
    for (std::int64_t j = 0; j < n; ++j)
      std::memcpy(to + j * to_stride, from + j * from_stride, kLanes * kBytes);
  } else if (from_stride == 1) {
    transpose(n, count, from_spacing, to_stride);
  } else if (to_stride == 1) {
    transpose(count, n, from_stride, to_spacing);
  } else {
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t b = 0; b < count; ++b)
        to[j * to_stride + b * to_spacing] = from[j * from_stride + b * from_spacing];
  }
}

template <class T>
void gather(const T* x, std::int64_t stride, std::int64_t spacing, std::int64_t count,
            std::int64_t n, T* block) {
  if (!x || count < kLanes) std::fill(block, block + n * kLanes, 0);
  if (x) copyLines(x, stride, spacing, block, kLanes, 1, count, n);
}

template <class T>
void scatter(const T* block, std::int64_t stride, std::int64_t spacing, std::int64_t count,
             std::int64_t n, T* x) {
  if (x) copyLines(block, kLanes, 1, x, stride, spacing, count, n);
}

std::vector<std::int64_t> radicesOf(std::int64_t n) {
  std::vector<std::int64_t> radices;
  for (const std::int64_t radix : {8, 4, 2, 3, 5}) {
    // 16 is 4 x 4, not 8 x 2.
    while (n % radix == 0 && !(radix == 8 && n % 32 == 16)) radices.push_back(radix), n /= radix;
  }
  for (std::int64_t radix = 7; n > 1; radix += 2) {
    while (n % radix == 0) radices.push_back(radix), n /= radix;
  }
  return radices;
}

/// Stockham's passes over blocks of sixteen lines.
template <class T>
class BlockPasses {
 public:
  explicit BlockPasses(std::int64_t n) : n_(n) {
    std::int64_t length = n;
    for (const std::int64_t radix : radicesOf(n)) {
      Step step{radix, length / radix, n / length * kLanes, {}, {}};
      for (std::int64_t p = 1; p < step.m; ++p) {
        for (std::int64_t j = 1; j < radix; ++j) push(step.twiddles, root(p * j, length));
      }
      // The general pass needs cosines and sines of positive angles.
      for (std::int64_t k = 0; k < radix; ++k) {
        const auto [re, im] = root(k, radix);
        push(step.roots, {re, -im});
      }
      steps_.push_back(std::move(step));
      length /= radix;
    }
  }

  std::int64_t size() const { return n_ * kLanes; }
  /// Four arrays of size(): the two parts of the block, and two for scratch.
  T* room(Workspace& workspace) const { return workspace.get<T>(4 * size()); }

  struct Block {
    T* re;
    T* im;
  };
  /// load() copies lines to the first two arrays of `room`; store() copies a block times `factor`
  /// to lines.
  void load(const T* re, const T* im, std::int64_t stride, std::int64_t spacing, std::int64_t count,
            T* room) const {
    gather(re, stride, spacing, count, n_, room);
    gather(im, stride, spacing, count, n_, room + size());
  }
  void store(Block block, T factor, std::int64_t stride, std::int64_t spacing, std::int64_t count,
             T* re, T* im) const {
    if (factor != 1) {
      passes<T>().scale(block.re, factor, size());
      passes<T>().scale(block.im, factor, size());
    }
    scatter(block.re, stride, spacing, count, n_, re);
    scatter(block.im, stride, spacing, count, n_, im);
  }
  /// Transforms the first two arrays of `room`; returns where the result is.
  Block run(T* room) const {
    Block in{room, room + size()};
    Block out{room + 2 * size(), room + 3 * size()};
    for (const Step& step : steps_) {
      const Pass<T> pass{step.radix, step.m, step.span, step.twiddles.data(), step.roots.data()};
      passes<T>().run(pass, in.re, in.im, out.re, out.im);
      std::swap(in, out);
    }
    return in;
  }

 private:
  struct Step {
    std::int64_t radix;
    std::int64_t m;
    std::int64_t span;
    std::vector<T> twiddles;
    std::vector<T> roots;
  };
  static void push(std::vector<T>& to, std::pair<double, double> w) {
    to.push_back(static_cast<T>(w.first));
    to.push_back(static_cast<T>(w.second));
  }

  std::int64_t n_;
  std::vector<Step> steps_;
};

/// The dimensions over the lines, merged where memory allows; the last is the longest.
std::vector<Dim> ordered(std::vector<Dim> dims) {
  std::vector<Dim> merged;
  for (const Dim& d : dims) appendLoop<&Dim::size, &Dim::in_stride, &Dim::out_stride>(merged, d);
  if (merged.empty()) merged.push_back({1, 0, 0});
  const auto longest =
      std::max_element(merged.begin(), merged.end(), [](const auto& a, const auto& b) {
        return std::min(a.size, kLanes) != std::min(b.size, kLanes) ? a.size < b.size
                                                                    : a.in_stride > b.in_stride;
      });
  std::iter_swap(longest, merged.end() - 1);
  return merged;
}

struct At {
  std::int64_t in = 0;
  std::int64_t out = 0;
};
At positionOf(const std::vector<Dim>& dims, std::size_t count, std::int64_t index) {
  At at;
  for (std::size_t d = count; d-- > 0;) {
    at.in += index % dims[d].size * dims[d].in_stride;
    at.out += index % dims[d].size * dims[d].out_stride;
    index /= dims[d].size;
  }
  return at;
}

template <class T>
const T* moved(const T* p, std::int64_t by) {
  return p ? p + by : nullptr;
}
template <class T>
T* moved(T* p, std::int64_t by) {
  return p ? p + by : nullptr;
}

/// Short lines, sixteen at a time.
template <class T>
class BlockPlan final : public Plan<T> {
 public:
  explicit BlockPlan(std::int64_t n) : n_(n), passes_(n) {}

  void run(ThreadPool& pool, const Lines<T>& lines) const override {
    const auto dims = ordered(lines.dims);
    const Dim inner = dims.back();
    const std::int64_t blocks = (inner.size + kLanes - 1) / kLanes;
    std::int64_t outer = 1;
    for (std::size_t d = 0; d + 1 < dims.size(); ++d) outer *= dims[d].size;
    const std::int64_t grain = std::max<std::int64_t>(1, 512 / n_);
    pool.parallelFor(outer * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
      Workspace workspace;
      T* room = passes_.room(workspace);
      for (std::int64_t i = begin; i < end; ++i) {
        At at = positionOf(dims, dims.size() - 1, i / blocks);
        const std::int64_t first = i % blocks * kLanes;
        at.in += first * inner.in_stride;
        at.out += first * inner.out_stride;
        const std::int64_t count = std::min(kLanes, inner.size - first);
        passes_.load(moved(lines.in_re, at.in), moved(lines.in_im, at.in), lines.in_stride,
                     inner.in_stride, count, room);
        passes_.store(passes_.run(room), lines.scale, lines.out_stride, inner.out_stride, count,
                      moved(lines.out_re, at.out), moved(lines.out_im, at.out));
      }
    });
  }

 private:
  std::int64_t n_;
  BlockPasses<T> passes_;
};

/// Plans that transform one line at a time; several lines are shared out over the threads.
template <class T>
class LinePlan : public Plan<T> {
 public:
  void run(ThreadPool& pool, const Lines<T>& lines) const override {
    std::int64_t count = 1;
    for (const auto& d : lines.dims) count *= d.size;
    if (count == 1) return runLine(pool, lines);  // which shares its own work out
    pool.parallelFor(count, 1, [&](std::int64_t begin, std::int64_t end) {
      Lines<T> line = lines;
      line.dims.clear();
      for (std::int64_t i = begin; i < end; ++i) {
        const At at = positionOf(lines.dims, lines.dims.size(), i);
        line.in_re = moved(lines.in_re, at.in);
        line.in_im = moved(lines.in_im, at.in);
        line.out_re = moved(lines.out_re, at.out);
        line.out_im = moved(lines.out_im, at.out);
        runLine(pool, line);
      }
    });
  }

 protected:
  virtual void runLine(ThreadPool& pool, const Lines<T>& line) const = 0;
};

/// Transforms a long line as a matrix of n1 rows and n2 columns: columns, twiddles, rows.
template <class T>
class MatrixPlan final : public LinePlan<T> {
 public:
  MatrixPlan(std::int64_t n1, std::int64_t n2) : n1_(n1), n2_(n2), columns_(n1), rows_(n2) {
    const std::int64_t width = (n2 + kLanes - 1) / kLanes * kLanes;
    re_.resize(static_cast<std::size_t>(n1 * width), 0);
    im_.resize(re_.size(), 0);
    for (std::int64_t j = 0; j < n2; ++j) {
      for (std::int64_t k = 0; k < n1; ++k) {
        // In the layout of a block of columns: [block][k][lane].
        const auto at = static_cast<std::size_t>((j / kLanes * n1 + k) * kLanes + j % kLanes);
        const auto [re, im] = root(k * j, n1 * n2);
        re_[at] = static_cast<T>(re);
        im_[at] = static_cast<T>(im);
      }
    }
  }

  void runLine(ThreadPool& pool, const Lines<T>& line) const override {
    Workspace workspace;
    T* re = workspace.get<T>(2 * n1_ * n2_);
    T* im = re + n1_ * n2_;
    const std::int64_t column_blocks = (n2_ + kLanes - 1) / kLanes;
    pool.parallelFor(column_blocks, grainOf(n1_), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) runColumns(line, i, re, im);
    });
    const std::int64_t row_blocks = (n1_ + kLanes - 1) / kLanes;
    pool.parallelFor(row_blocks, grainOf(n2_), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) runRows(line, i, re, im);
    });
  }

 private:
  static std::int64_t grainOf(std::int64_t n) { return std::max<std::int64_t>(1, 256 / n); }

  void runColumns(const Lines<T>& line, std::int64_t i, T* re, T* im) const {
    const std::int64_t first = i * kLanes;
    const std::int64_t count = std::min(kLanes, n2_ - first);
    const std::int64_t at = first * line.in_stride;
    const std::int64_t size = columns_.size();
    Workspace workspace;
    T* room = columns_.room(workspace);
    columns_.load(moved(line.in_re, at), moved(line.in_im, at), n2_ * line.in_stride,
                  line.in_stride, count, room);
    const auto block = columns_.run(room);
    passes<T>().multiply(block.re, block.im, re_.data() + i * size, im_.data() + i * size, size);
    columns_.store(block, 1, n2_, 1, count, re + first, im + first);
  }

  void runRows(const Lines<T>& line, std::int64_t i, const T* re, const T* im) const {
    const std::int64_t first = i * kLanes;
    const std::int64_t count = std::min(kLanes, n1_ - first);
    const std::int64_t at = first * line.out_stride;
    Workspace workspace;
    T* room = rows_.room(workspace);
    rows_.load(re + first * n2_, im + first * n2_, 1, n2_, count, room);
    rows_.store(rows_.run(room), line.scale, n1_ * line.out_stride, line.out_stride, count,
                moved(line.out_re, at), moved(line.out_im, at));
  }

  std::int64_t n1_;
  std::int64_t n2_;
  BlockPasses<T> columns_;
  BlockPasses<T> rows_;
  std::vector<T> re_;
  std::vector<T> im_;
};

/// Transforms any length by a convolution whose length is a power of two: x_k c_k * conj(c),
/// c_k = e^(-pi i k^2 / n).
template <class T>
class ConvolutionPlan final : public LinePlan<T> {
 public:
  explicit ConvolutionPlan(std::int64_t n)
      : n_(n),
        m_(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(2 * n - 1)))),
        plan_(Plan<T>::make(m_, 1)),
        chirp_(static_cast<std::size_t>(2 * n)),
        kernel_(static_cast<std::size_t>(2 * m_), 0) {
    std::vector<T> filter(static_cast<std::size_t>(2 * m_), 0);
    for (std::int64_t k = 0; k < n; ++k) {
      // The angle depends only on k^2 modulo 2 n, which stays small.
      const auto [re, im] = root(squareModulo(k, 2 * n), 2 * n);
      const auto at = static_cast<std::size_t>(k);
      chirp_[at] = static_cast<T>(re);
      chirp_[at + static_cast<std::size_t>(n)] = static_cast<T>(im);
      for (const std::int64_t place : {k, (m_ - k) % m_}) {
        filter[static_cast<std::size_t>(place)] = static_cast<T>(re / static_cast<double>(m_));
        filter[static_cast<std::size_t>(place + m_)] =
            static_cast<T>(-im / static_cast<double>(m_));
      }
    }
    transform(ThreadPool::shared(), filter.data(), filter.data() + m_, kernel_.data(),
              kernel_.data() + m_);
  }

 protected:
  void runLine(ThreadPool& pool, const Lines<T>& line) const override {
    Workspace workspace;
    T* a = workspace.get<T>(2 * m_);
    T* b = workspace.get<T>(2 * m_);
    for (std::int64_t k = 0; k < n_; ++k) {
      a[k] = line.in_re ? line.in_re[k * line.in_stride] : 0;
      a[k + m_] = line.in_im ? line.in_im[k * line.in_stride] : 0;
    }
    passes<T>().multiply(a, a + m_, chirp_.data(), chirp_.data() + n_, n_);
    std::fill(a + n_, a + m_, 0);
    std::fill(a + m_ + n_, a + 2 * m_, 0);
    transform(pool, a, a + m_, b, b + m_);
    passes<T>().multiply(b, b + m_, kernel_.data(), kernel_.data() + m_, m_);
    transform(pool, b + m_, b, a + m_, a);
    passes<T>().multiply(a, a + m_, chirp_.data(), chirp_.data() + n_, n_);
    for (std::int64_t k = 0; k < n_; ++k) {
      if (line.out_re) line.out_re[k * line.out_stride] = a[k] * line.scale;
      if (line.out_im) line.out_im[k * line.out_stride] = a[k + m_] * line.scale;
    }
  }

 private:
  static std::int64_t squareModulo(std::int64_t k, std::int64_t modulus) {
    return static_cast<std::int64_t>(static_cast<unsigned __int128>(k) *
                                     static_cast<unsigned __int128>(k) %
                                     static_cast<unsigned __int128>(modulus));
  }

  void transform(ThreadPool& pool, const T* in_re, const T* in_im, T* out_re, T* out_im) const {
    plan_->run(pool, {in_re, in_im, 1, out_re, out_im, 1, {}, 1});
  }

  std::int64_t n_;
  std::int64_t m_;
  std::shared_ptr<const Plan<T>> plan_;
  std::vector<T> chirp_;
  std::vector<T> kernel_;
};

/// The largest divisor of n up to its square root.
std::int64_t middleDivisor(std::int64_t n) {
  auto d = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % d != 0) --d;
  return d;
}

}  // namespace

std::int64_t largestPrimeFactor(std::int64_t n) {
  std::int64_t largest = 1;
  for (std::int64_t p = 2; p * p <= n; ++p) {
    while (n % p == 0) largest = p, n /= p;
  }
  return std::max(largest, n);
}

template <class T>
std::shared_ptr<const Plan<T>> Plan<T>::make(std::int64_t length, std::int64_t num_lines) {
  if (largestPrimeFactor(length) > kLargestRadix)
    return std::make_shared<ConvolutionPlan<T>>(length);
  constexpr std::int64_t kWorthCutting = 128;
  const bool few_lines = num_lines < kLanes / 2 && length >= kWorthCutting;
  if (length > kLongestBlock<T> || few_lines) {
    const std::int64_t n1 = middleDivisor(length);
    if (n1 > 1) return std::make_shared<MatrixPlan<T>>(n1, length / n1);
  }
  return std::make_shared<BlockPlan<T>>(length);
}

template class Plan<float>;
template class Plan<double>;

}  // namespace ipujax::engine::fourier
