#include <algorithm>
#include <cstring>

#include "engine/Rank.hpp"
#include "engine/Workspace.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/conv/Window.hpp"
#include "engine/kernels/reduce/ReduceBody.hpp"
#include "engine/kernels/reduce/ReduceLoops.hpp"
#include "engine/simd/VectorOps.hpp"

/// The kernel "popx.reduce_window_body": folds windows with any associative body, tap by tap for a
/// block of outputs at a time; one long window by doubling: windows of 2, 4, 8 ... elements.
/// Padding is left out, as in XLA on CPUs: body(x, initial value) need not be x. (Logarithms of
/// sums of complex numbers give NaN for two times -infinity.)
/// Operands: k inputs, k outputs (contiguous), k initial values.
namespace ipujax::engine {

namespace {

constexpr std::int64_t kLanes = ReduceBody::kLanes;
constexpr std::int64_t kLongWindow = 32;
constexpr std::size_t kMax = TurnBuffers::kMaxValues;

class BodyWindow final : public Kernel {
 public:
  explicit BodyWindow(const StepDesc& step)
      : BodyWindow(step, expr::ExprProgram::fromIntegers(step.attributes.integers("expr"))) {}
  void run(RunContext& context, std::span<std::byte* const> pointers) const override;

 private:
  BodyWindow(const StepDesc& step, const expr::ExprProgram& program);
  void directBlock(std::span<std::byte* const> p, std::int64_t begin, std::int64_t n) const;
  void gatherTap(std::span<std::byte* const> p, const std::int64_t* tap, const std::int64_t* index,
                 std::int64_t n, std::byte* const* out, bool* valid) const;
  void doublingRow(std::span<std::byte* const> p, std::int64_t row) const;
  /// The padded positions that have elements.
  struct Inside {
    std::int64_t begin = 0, end = 0;
  };
  void append(const std::byte* const* a, const std::byte* const* b, std::byte* const* out,
              std::int64_t n, std::int64_t size, Inside inside, std::byte* scratch) const;
  void applyLong(const std::byte* const* a, const std::byte* const* b, std::byte* const* out,
                 std::int64_t n, std::byte* scratch) const;

  ReduceBody body_;
  std::size_t k_;
  std::vector<std::vector<WindowDim>> dims_;  ///< by input
  std::int64_t outputs_ = 1;
  std::int64_t volume_ = 1;
  bool long_ = false;
  std::size_t window_ = 0;
};

BodyWindow::BodyWindow(const StepDesc& step, const expr::ExprProgram& program)
    : body_(program), k_(program.numOutputs()) {
  const Window window = Window::from(step.attributes.integers("window"));
  volume_ = window.volume();
  for (std::size_t i = 0; i < k_; ++i) {
    dims_.push_back(windowDims(window, step.operands[i], step.operands[k_ + i]));
    if (dims_.back().empty()) dims_.back().push_back({});
  }
  std::size_t windows = 0;
  for (std::size_t d = 0; d < dims_[0].size(); ++d) {
    outputs_ *= dims_[0][d].m;
    if (dims_[0][d].plain) continue;
    ++windows;
    window_ = d;
  }
  const WindowDim& w = dims_[0][window_];
  long_ = windows == 1 && w.size >= kLongWindow && w.base_dilation == 1 && w.window_dilation == 1;
}

void BodyWindow::run(RunContext& context, std::span<std::byte* const> p) const {
  if (outputs_ == 0) return;
  if (long_) {
    const std::int64_t rows = outputs_ / dims_[0][window_].m;
    context.pool.parallelFor(rows, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) doublingRow(p, r);
    });
    return;
  }
  const std::int64_t blocks = (outputs_ + kLanes - 1) / kLanes;
  context.pool.parallelFor(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      directBlock(p, b * kLanes, std::min(kLanes, outputs_ - b * kLanes));
    }
  });
}

/// index: [dimension][lane], the outputs' coordinates. valid: whether a lane has an element.
void BodyWindow::gatherTap(std::span<std::byte* const> p, const std::int64_t* tap,
                           const std::int64_t* index, std::int64_t n, std::byte* const* out,
                           bool* valid) const {
  std::int64_t offsets[kLanes];
  for (std::size_t i = 0; i < k_; ++i) {
    std::fill_n(offsets, n, std::int64_t{0});
    std::fill_n(valid, n, true);
    for (std::size_t d = 0; d < dims_[i].size(); ++d) {
      const WindowDim& dim = dims_[i][d];
      for (std::int64_t l = 0; l < n; ++l) {
        const std::int64_t at = dim.inputAt(index[d * kLanes + l], tap[d]);
        valid[l] = valid[l] && at >= 0;
        offsets[l] += at * dim.in_stride;
      }
    }
    const std::size_t size = body_.bytes(i);
    for (std::int64_t l = 0; l < n; ++l) {
      const std::byte* from =
          valid[l] ? p[i] + offsets[l] * static_cast<std::int64_t>(size) : p[2 * k_ + i];
      std::memcpy(out[i] + l * static_cast<std::int64_t>(size), from, size);
    }
  }
}

void BodyWindow::directBlock(std::span<std::byte* const> p, std::int64_t begin,
                             std::int64_t n) const {
  const auto& dims = dims_[0];
  Workspace workspace;
  std::byte* scratch = body_.scratchIn(workspace);
  TurnBuffers turns(body_, kLanes, workspace);
  TurnBuffers values(body_, kLanes, workspace);
  auto* index = workspace.get<std::int64_t>(static_cast<std::int64_t>(dims.size()) * kLanes);
  for (std::int64_t l = 0; l < n; ++l) {
    std::int64_t at = begin + l;
    for (std::size_t d = dims.size(); d-- > 0;) {
      index[d * kLanes + l] = at % dims[d].m;
      at /= dims[d].m;
    }
  }
  for (std::size_t i = 0; i < k_; ++i) simd::fill(turns.now()[i], p[2 * k_ + i], body_.bytes(i), n);
  std::int64_t tap[kMostRank] = {};
  for (std::int64_t t = 0; t < volume_; ++t) {
    bool valid[kLanes];
    gatherTap(p, tap, index, n, values.now(), valid);
    body_.apply(turns.now(), values.now(), turns.next(), n, scratch);
    for (std::size_t i = 0; i < k_; ++i) {
      const std::size_t size = body_.bytes(i);
      for (std::int64_t l = 0; l < n; ++l) {
        const std::size_t at = static_cast<std::size_t>(l) * size;
        if (!valid[l]) std::memcpy(turns.next()[i] + at, turns.now()[i] + at, size);
      }
    }
    turns.flip();
    for (std::size_t d = dims.size(); d-- > 0;) {
      if (++tap[d] < dims[d].size) break;
      tap[d] = 0;
    }
  }
  for (std::size_t i = 0; i < k_; ++i) {
    const auto size = static_cast<std::int64_t>(body_.bytes(i));
    std::memcpy(p[k_ + i] + begin * size, turns.now()[i], static_cast<std::size_t>(n * size));
  }
}

void BodyWindow::applyLong(const std::byte* const* a, const std::byte* const* b,
                           std::byte* const* out, std::int64_t n, std::byte* scratch) const {
  std::byte* blocks[kMax];
  const std::byte* left[kMax];
  const std::byte* right[kMax];
  Workspace workspace;
  std::byte* staged = workspace.get(kMax * kLanes * 8);
  for (std::int64_t l = 0; l < n; l += kLanes) {
    const std::int64_t size = std::min(kLanes, n - l);
    for (std::size_t i = 0; i < k_; ++i) {
      const std::int64_t at = l * static_cast<std::int64_t>(body_.bytes(i));
      left[i] = a[i] + at;
      right[i] = b[i] + at;
      blocks[i] = staged + static_cast<std::int64_t>(i) * kLanes * 8;
    }
    body_.apply(left, right, blocks, size, scratch);
    for (std::size_t i = 0; i < k_; ++i) {
      std::memcpy(out[i] + l * static_cast<std::int64_t>(body_.bytes(i)), blocks[i],
                  static_cast<std::size_t>(size) * body_.bytes(i));
    }
  }
}

/// out[q], q < n, combines a[q], the fold of positions [q, q + size), and b[q], the fold of
/// positions that follow. If one of them has no elements, it is the other. `out` may be `a`.
void BodyWindow::append(const std::byte* const* a, const std::byte* const* b, std::byte* const* out,
                        std::int64_t n, std::int64_t size, Inside inside,
                        std::byte* scratch) const {
  const std::int64_t low = std::clamp<std::int64_t>(inside.begin - size + 1, 0, n);
  const std::int64_t high = std::clamp<std::int64_t>(inside.end - size, low, n);
  const std::byte* left[kMax];
  const std::byte* right[kMax];
  std::byte* to[kMax];
  for (std::size_t i = 0; i < k_; ++i) {
    const auto bytes = static_cast<std::int64_t>(body_.bytes(i));
    std::memmove(out[i], b[i], static_cast<std::size_t>(low * bytes));
    if (out[i] != a[i])
      std::memcpy(out[i] + high * bytes, a[i] + high * bytes,
                  static_cast<std::size_t>((n - high) * bytes));
    left[i] = a[i] + low * bytes;
    right[i] = b[i] + low * bytes;
    to[i] = out[i] + low * bytes;
  }
  applyLong(left, right, to, high - low, scratch);
}

/// Folds one row along the window. table[q] = the fold of 2^b elements from padded position q on;
/// the result combines the powers of two that sum to the window's size, from the left.
// Long: all of its stages share local tables.
void BodyWindow::doublingRow(std::span<std::byte* const> p, std::int64_t row) const {
  const WindowDim& w = dims_[0][window_];
  Workspace workspace;
  std::byte* scratch = body_.scratchIn(workspace);
  const std::int64_t length = (w.m - 1) * w.stride + w.size;
  std::byte* memory = workspace.get(length * 16 * static_cast<std::int64_t>(k_));
  std::byte* table[kMax];
  std::byte* result[kMax];
  std::byte* outs[kMax];
  Inside inside;
  for (std::size_t i = 0; i < k_; ++i) {
    table[i] = memory + static_cast<std::int64_t>(2 * i) * length * 8;
    result[i] = table[i] + length * 8;
    const auto size = static_cast<std::int64_t>(body_.bytes(i));
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t at = row;
    for (std::size_t d = dims_[i].size(); d-- > 0;) {
      if (d == window_) continue;
      in += at % dims_[i][d].m * dims_[i][d].in_stride;
      out += at % dims_[i][d].m * dims_[i][d].out_stride;
      at /= dims_[i][d].m;
    }
    const WindowDim& dim = dims_[i][window_];
    simd::fill(table[i], p[2 * k_ + i], body_.bytes(i), length);
    const std::int64_t first = std::max<std::int64_t>(0, -dim.low);
    const std::int64_t to = first + dim.low;
    const std::int64_t n = std::min(dim.n - first, length - to);
    if (n > 0) {
      inside = {to, to + n};
      simd::gatherStrided(p[i] + (in + first * dim.in_stride) * size, dim.in_stride,
                          table[i] + to * size, body_.bytes(i), n);
    }
    outs[i] = p[k_ + i] + out * size;
  }
  const std::int64_t positions = length - w.size + 1;
  std::int64_t offset = 0;
  std::int64_t valid = length;
  for (std::int64_t power = 1; power <= w.size; power *= 2) {
    const std::byte* shifted[kMax];
    if (w.size & power) {
      for (std::size_t i = 0; i < k_; ++i) {
        const auto size = static_cast<std::int64_t>(body_.bytes(i));
        shifted[i] = table[i] + offset * size;
        if (offset == 0)
          std::memcpy(result[i], table[i], static_cast<std::size_t>(positions * size));
      }
      if (offset > 0) append(result, shifted, result, positions, offset, inside, scratch);
      offset += power;
    }
    if (2 * power > w.size) break;
    valid -= power;
    for (std::size_t i = 0; i < k_; ++i) {
      shifted[i] = table[i] + power * static_cast<std::int64_t>(body_.bytes(i));
    }
    append(table, shifted, table, valid, power, inside, scratch);
  }
  // Folds onto the initial value, which is the result if a window has no elements.
  const std::int64_t low = std::clamp<std::int64_t>(inside.begin - w.size + 1, 0, positions);
  const std::int64_t high = std::clamp<std::int64_t>(inside.end, low, positions);
  std::byte* folded[kMax];
  for (std::size_t i = 0; i < k_; ++i) {
    simd::fill(table[i], p[2 * k_ + i], body_.bytes(i), positions);
    folded[i] = result[i] + low * static_cast<std::int64_t>(body_.bytes(i));
  }
  applyLong(table, folded, folded, high - low, scratch);
  for (std::size_t i = 0; i < k_; ++i) {
    const std::size_t size = body_.bytes(i);
    std::memcpy(result[i], table[i], static_cast<std::size_t>(low) * size);
    std::memcpy(result[i] + static_cast<std::size_t>(high) * size, table[i],
                static_cast<std::size_t>(positions - high) * size);
  }
  for (std::size_t i = 0; i < k_; ++i) {
    const std::int64_t stride = dims_[i][window_].out_stride;
    const auto size = static_cast<std::int64_t>(body_.bytes(i));
    for (std::int64_t o = 0; o < w.m; ++o) {
      std::memcpy(outs[i] + o * stride * size, result[i] + o * w.stride * size, body_.bytes(i));
    }
  }
}

void checkWindow(StepCheck& check) {
  const std::size_t k = ReduceBody::check(check);
  Window::check(check, check.read(0), check.written(k));
}
const RegisterKernel kWindow{"popx.reduce_window_body", makeKernel<BodyWindow>, checkWindow};

}  // namespace

}  // namespace ipujax::engine
