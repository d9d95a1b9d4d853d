#include <algorithm>
#include <cstring>

#include "engine/Half.hpp"
#include "engine/Rank.hpp"
#include "engine/Workspace.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/conv/Window.hpp"
#include "engine/kernels/reduce/ReduceLoops.hpp"
#include "engine/simd/VectorOps.hpp"

/// The kernel "popx.reduce_window": one named reducer. Two ways: directly, a row of outputs at a
/// time, tap by tap; or, for one long window, in time that does not depend on its length.
/// Operands: input, output (contiguous), optionally the initial value.
namespace ipujax::engine {

namespace {
using reduction::LoopDim;
using reduction::Loops;
using reduction::Odometer;
using reduction::Reducer;

constexpr std::int64_t kLongWindow = 16;
constexpr std::int64_t kLaneBlock = 256;

class NamedWindow final : public Kernel {
 public:
  explicit NamedWindow(const StepDesc& step);
  void run(RunContext& context, std::span<std::byte* const> pointers) const override;

 private:
  void chooseVector();
  void findTaps();
  void findLong();
  void directRow(const std::byte* in, std::byte* out, const std::int64_t* index,
                 const std::uint64_t* init) const;
  void addTaps(const std::byte* in, std::byte* acc, std::size_t dim,
               const std::int64_t* index) const;
  void alongVector(const std::byte* x, std::byte* acc) const;
  void finishRow(std::byte* acc, std::byte* out, const std::int64_t* index,
                 const std::uint64_t* init) const;
  void longRow(const std::byte* in, std::byte* out) const;
  void longLanes(const std::byte* in, std::byte* out, std::int64_t lanes, bool forward) const;
  void slidingLanes(const std::byte* in, std::byte* out, std::int64_t lanes) const;
  void runLong(ThreadPool& pool, const std::byte* in, std::byte* out) const;
  void fill(std::byte* acc, std::int64_t n) const {
    simd::fill(acc, &loops_->identity, acc_bytes_, n);
  }
  void store(const std::byte* acc, std::byte* out, std::int64_t stride, std::int64_t n) const;

  bool tapRow(const std::byte* in, std::byte* acc, const std::int64_t* index) const;

  const Loops* loops_;
  reduction::TapLoop tap_loop_ = nullptr;
  std::vector<std::size_t> tap_dims_;  ///< windows outside vector_, if tap_loop_ is used
  std::int64_t inner_begin_ = 0;       ///< outputs along vector_ with no padding under them
  std::int64_t inner_end_ = 0;
  Reducer reducer_;
  ElementType type_;
  std::int64_t in_bytes_;
  std::int64_t acc_bytes_;
  bool average_;
  std::vector<WindowDim> dims_;
  std::vector<std::vector<Taps>> taps_;  ///< by dimension and output
  std::size_t vector_ = 0;
  std::int64_t outputs_ = 1;
  std::int64_t volume_ = 1;
  bool long_ = false;  ///< dims_[window_] is the only window, and long
  std::size_t window_ = 0;
  std::vector<LoopDim> lanes_;  ///< if long_: the other dimensions
};

NamedWindow::NamedWindow(const StepDesc& step)
    : reducer_(static_cast<Reducer>(step.attributes.integer("reducer"))),
      type_(step.operands[0].type),
      average_(step.attributes.integer("average") != 0) {
  loops_ = reduction::loopsFor(reducer_, type_);
  in_bytes_ = static_cast<std::int64_t>(sizeOf(type_));
  acc_bytes_ = static_cast<std::int64_t>(sizeOf(loops_->acc));
  const Window window = Window::from(step.attributes.integers("window"));
  dims_ = windowDims(window, step.operands[0], step.operands[1]);
  if (dims_.empty()) dims_.push_back({});
  volume_ = window.volume();
  for (const WindowDim& dim : dims_) {
    outputs_ *= dim.m;
    std::vector<Taps> taps;
    for (std::int64_t o = 0; o < dim.m; ++o) taps.push_back(dim.tapsOf(o));
    taps_.push_back(std::move(taps));
  }
  chooseVector();
  findTaps();
  findLong();
}

/// The tap loop takes two windows, of which one may be along the rows.
void NamedWindow::findTaps() {
  const WindowDim& v = dims_[vector_];
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    if (d != vector_ && !dims_[d].plain) tap_dims_.push_back(d);
  }
  const std::size_t room = v.size > 1 ? 1 : 2;
  if (tap_dims_.size() > room || v.base_dilation > 1) return;
  tap_loop_ = reduction::tapLoopFor(reducer_, type_);
  const std::int64_t last = v.n - 1 + v.low - (v.size - 1) * v.window_dilation;
  inner_begin_ = std::clamp<std::int64_t>((v.low + v.stride - 1) / v.stride, 0, v.m);
  inner_end_ =
      last < 0 ? inner_begin_ : std::clamp<std::int64_t>(last / v.stride + 1, inner_begin_, v.m);
}

/// Rows of outputs run along the dimension that is contiguous in memory, if it is long enough.
void NamedWindow::chooseVector() {
  std::int64_t best = -1;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    const WindowDim& dim = dims_[d];
    const bool contiguous = dim.in_stride * dim.stride == 1;
    std::int64_t score = std::min<std::int64_t>(dim.m, 64) * (contiguous ? 4 : 1);
    if (dim.base_dilation > 1) score = 0;
    if (score >= best) {
      best = score;
      vector_ = d;
    }
  }
}

void NamedWindow::findLong() {
  std::size_t windows = 0;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    if (dims_[d].plain) continue;
    ++windows;
    window_ = d;
  }
  const WindowDim& w = dims_[window_];
  long_ = windows == 1 && w.size >= kLongWindow && w.m >= kLongWindow && w.stride == 1 &&
          w.base_dilation == 1 && w.window_dilation == 1 && !average_;
  if (!long_) return;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    if (d != window_) lanes_.push_back({dims_[d].m, dims_[d].in_stride, dims_[d].out_stride});
  }
  if (lanes_.empty()) lanes_.push_back({});
}

void NamedWindow::run(RunContext& context, std::span<std::byte* const> p) const {
  if (outputs_ == 0) return;
  const std::uint64_t init =
      p.size() > 2 ? reduction::accumulatorOf(p[2], type_, *loops_) : loops_->identity;
  const bool neutral = init == loops_->identity;
  if (long_ && neutral) return runLong(context.pool, p[0], p[1]);
  const std::int64_t length = dims_[vector_].m;
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / (length * volume_));
  context.pool.parallelFor(outputs_ / length, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t index[kMostRank] = {};
    std::int64_t row = begin;
    for (std::size_t d = dims_.size(); d-- > 0;) {
      if (d == vector_) continue;
      index[d] = row % dims_[d].m;
      row /= dims_[d].m;
    }
    for (std::int64_t r = begin; r < end; ++r) {
      directRow(p[0], p[1], index, neutral ? nullptr : &init);
      for (std::size_t d = dims_.size(); d-- > 0;) {
        if (d == vector_) continue;
        if (++index[d] < dims_[d].m) break;
        index[d] = 0;
      }
    }
  });
}

void NamedWindow::directRow(const std::byte* in, std::byte* out, const std::int64_t* index,
                            const std::uint64_t* init) const {
  const std::int64_t length = dims_[vector_].m;
  std::int64_t at = 0;
  for (std::size_t d = 0; d < dims_.size(); ++d) at += index[d] * dims_[d].out_stride;
  out += at * in_bytes_;
  const bool finishes = init || average_ || dims_[vector_].out_stride != 1 || type_ != loops_->acc;
  Workspace workspace;
  std::byte* acc = finishes ? workspace.get(length * 8) : out;
  if (!tap_loop_ || !tapRow(in, acc, index)) {
    fill(acc, length);
    addTaps(in, acc, 0, index);
  }
  if (finishes) finishRow(acc, out, index, init);
}

/// Computes the row with the tap loop: whole windows together, those over the edges one by one.
/// Returns false if no element is under the row.
bool NamedWindow::tapRow(const std::byte* in, std::byte* acc, const std::int64_t* index) const {
  const WindowDim& v = dims_[vector_];
  reduction::TapBlock block;
  std::int64_t base = 0;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    if (d == vector_) continue;
    const Taps& taps = taps_[d][index[d]];
    if (taps.count == 0) return false;
    base += taps.first * dims_[d].in_stride;
  }
  if (!tap_dims_.empty()) {
    const std::size_t d = tap_dims_[0];
    const Taps& taps = taps_[d][index[d]];
    block.rows = taps.count;
    block.row_stride = taps.step * dims_[d].in_stride;
  }
  if (tap_dims_.size() > 1) {
    const std::size_t d = tap_dims_[1];
    const Taps& taps = taps_[d][index[d]];
    block.columns = taps.count;
    block.column_stride = taps.step * dims_[d].in_stride;
  } else {
    block.columns = v.size;
    block.column_stride = v.window_dilation * v.in_stride;
  }
  block.lane_stride = v.stride * v.in_stride;
  const auto at = [&](std::int64_t input) { return in + (base + input * v.in_stride) * in_bytes_; };
  if (inner_begin_ < inner_end_) {
    block.x = at(inner_begin_ * v.stride - v.low);
    tap_loop_(block, acc + inner_begin_ * acc_bytes_, inner_end_ - inner_begin_);
  }
  const auto edge = [&](std::int64_t o) {
    const Taps& taps = taps_[vector_][o];
    if (taps.count == 0) return fill(acc + o * acc_bytes_, 1);
    reduction::TapBlock one = block;
    one.x = at(taps.first);
    if (tap_dims_.size() < 2) one.columns = taps.count;
    tap_loop_(one, acc + o * acc_bytes_, 1);
  };
  for (std::int64_t o = 0; o < inner_begin_; ++o) edge(o);
  for (std::int64_t o = inner_end_; o < v.m; ++o) edge(o);
  return true;
}

/// Adds every tap of the dimensions from `dim` on.
void NamedWindow::addTaps(const std::byte* in, std::byte* acc, std::size_t dim,
                          const std::int64_t* index) const {
  if (dim == vector_) ++dim;
  if (dim >= dims_.size()) return alongVector(in, acc);
  const Taps& taps = taps_[dim][index[dim]];
  const std::int64_t stride = dims_[dim].in_stride * in_bytes_;
  for (std::int64_t t = 0; t < taps.count; ++t) {
    addTaps(in + (taps.first + t * taps.step) * stride, acc, dim + 1, index);
  }
}

void NamedWindow::alongVector(const std::byte* x, std::byte* acc) const {
  const WindowDim& v = dims_[vector_];
  const std::int64_t stride = v.in_stride * in_bytes_;
  if (v.base_dilation > 1) {
    for (std::int64_t o = 0; o < v.m; ++o) {
      const Taps& taps = taps_[vector_][o];
      for (std::int64_t t = 0; t < taps.count; ++t) {
        loops_->accumulate(x + (taps.first + t * taps.step) * stride, 1, acc + o * acc_bytes_, 1);
      }
    }
    return;
  }
  for (std::int64_t k = 0; k < v.size; ++k) {
    const std::int64_t at = k * v.window_dilation - v.low;  // input of output 0
    const std::int64_t begin = at >= 0 ? 0 : (-at + v.stride - 1) / v.stride;
    const std::int64_t last = v.n - 1 - at;
    if (last < 0) continue;
    const std::int64_t end = std::min(v.m, last / v.stride + 1);
    if (begin >= end) continue;
    loops_->accumulate(x + (at + begin * v.stride) * stride, v.in_stride * v.stride,
                       acc + begin * acc_bytes_, end - begin);
  }
}

void NamedWindow::finishRow(std::byte* acc, std::byte* out, const std::int64_t* index,
                            const std::uint64_t* init) const {
  const WindowDim& v = dims_[vector_];
  if (init || average_) {
    std::int64_t others = 1;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      if (d != vector_) others *= taps_[d][index[d]].count;
    }
    for (std::int64_t o = 0; o < v.m; ++o) {
      const std::int64_t count = others * taps_[vector_][o].count;
      if (average_ && count > 1) {
        float* value = reinterpret_cast<float*>(acc) + o;
        *value /= static_cast<float>(count);
      }
      if (init) loops_->merge(init, acc + o * acc_bytes_, 1);
    }
  }
  store(acc, out, v.out_stride, v.m);
}

void NamedWindow::store(const std::byte* acc, std::byte* out, std::int64_t stride,
                        std::int64_t n) const {
  if (type_ != ElementType::kHalf) {
    simd::scatterStrided(acc, out, stride, static_cast<std::size_t>(acc_bytes_), n);
    return;
  }
  const float* values = reinterpret_cast<const float*>(acc);
  std::uint16_t* halves = reinterpret_cast<std::uint16_t*>(out);
  if (stride == 1) return simd::floatToHalf(values, halves, n);
  for (std::int64_t i = 0; i < n; ++i) halves[i * stride] = floatToHalf(values[i]);
}

void NamedWindow::runLong(ThreadPool& pool, const std::byte* in, std::byte* out) const {
  const WindowDim& w = dims_[window_];
  const std::int64_t rows = outputs_ / w.m;
  // Lanes run side by side if the innermost dimension is not the window.
  const LoopDim inner = lanes_.back();
  const bool by_lanes = window_ + 1 != dims_.size() && inner.n > 1;
  const bool to_start = w.m - 1 - w.low <= 0;
  const bool to_end = w.size - 1 - w.low >= w.n - 1;
  std::int64_t lanes = by_lanes ? std::min(inner.n, kLaneBlock) : 1;
  if (!to_start && !to_end) {
    lanes = std::clamp<std::int64_t>((std::int64_t{1} << 20) / std::max<std::int64_t>(w.n, 1), 1,
                                     lanes);
  }
  const std::int64_t unit = by_lanes ? inner.n : 1;
  const std::int64_t per_unit = (unit + lanes - 1) / lanes;
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / (lanes * w.m));
  pool.parallelFor(rows / unit * per_unit, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t lane = t % per_unit * lanes;
      const Odometer at(lanes_, t / per_unit * unit + lane);
      const std::byte* x = in + at.in * in_bytes_;
      std::byte* y = out + at.out * in_bytes_;
      const std::int64_t n = std::min(lanes, unit - lane);
      if (!by_lanes && (to_start || to_end)) {
        longRow(x, y);
      } else if (to_start || to_end) {
        longLanes(x, y, n, to_start);
      } else {
        slidingLanes(x, y, n);
      }
    }
  });
}

/// Computes one lane from prefixes (or from suffixes, as prefixes of the reversed row).
void NamedWindow::longRow(const std::byte* in, std::byte* out) const {
  const WindowDim& w = dims_[window_];
  const bool forward = w.m - 1 - w.low <= 0;
  // Cumulative operations: output i is the prefix up to input i.
  const bool in_place = forward && w.m == w.n && w.size == w.low + 1 && w.in_stride == 1 &&
                        w.out_stride == 1 && type_ != ElementType::kHalf &&
                        reducer_ != Reducer::kSquareAdd;
  if (in_place) {
    std::memcpy(out, in, static_cast<std::size_t>(w.n * in_bytes_));
    loops_->scan(out, w.n);
    return;
  }
  Workspace workspace;
  std::byte* acc = workspace.get((w.n + 1) * 8);
  fill(acc, w.n);
  const std::int64_t stride = w.in_stride;
  const std::byte* first = forward ? in : in + (w.n - 1) * stride * in_bytes_;
  loops_->accumulate(first, forward ? stride : -stride, acc, w.n);
  loops_->scan(acc, w.n);
  std::byte* row = workspace.get(w.m * 8);
  for (std::int64_t o = 0; o < w.m; ++o) {
    const std::int64_t left = o - w.low;
    const std::int64_t count =
        forward ? std::min(left + w.size, w.n) : w.n - std::max<std::int64_t>(left, 0);
    const std::byte* value = count > 0 ? acc + (count - 1) * acc_bytes_
                                       : reinterpret_cast<const std::byte*>(&loops_->identity);
    std::memcpy(row + o * acc_bytes_, value, static_cast<std::size_t>(acc_bytes_));
  }
  store(row, out, w.out_stride, w.m);
}

/// Computes lanes that lie side by side, from prefixes or suffixes.
void NamedWindow::longLanes(const std::byte* in, std::byte* out, std::int64_t lanes,
                            bool forward) const {
  const WindowDim& w = dims_[window_];
  const LoopDim inner = lanes_.back();
  Workspace workspace;
  std::byte* acc = workspace.get(kLaneBlock * 8);
  fill(acc, lanes);
  std::int64_t taken = 0;
  for (std::int64_t i = 0; i < w.m; ++i) {
    const std::int64_t o = forward ? i : w.m - 1 - i;
    const std::int64_t left = o - w.low;
    const std::int64_t count =
        forward ? std::min(left + w.size, w.n) : w.n - std::max<std::int64_t>(left, 0);
    for (; taken < count; ++taken) {
      const std::int64_t at = forward ? taken : w.n - 1 - taken;
      loops_->accumulate(in + at * w.in_stride * in_bytes_, inner.in, acc, lanes);
    }
    store(acc, out + o * w.out_stride * in_bytes_, inner.out, lanes);
  }
}

/// Any long window: prefixes and suffixes of blocks as long as the window; each window is the end
/// of one block and the start of the next (van Herk, Gil and Werman).
void NamedWindow::slidingLanes(const std::byte* in, std::byte* out, std::int64_t lanes) const {
  const WindowDim& w = dims_[window_];
  const LoopDim inner = lanes_.back();
  const std::int64_t row = lanes * acc_bytes_;
  Workspace workspace;
  std::byte* prefix = workspace.get(w.n * row);
  std::byte* suffix = workspace.get(w.n * row);
  const auto extend = [&](std::byte* table, std::int64_t i, std::int64_t from, bool starts) {
    if (starts) {
      fill(table + i * row, lanes);
    } else {
      std::memcpy(table + i * row, table + from * row, static_cast<std::size_t>(row));
    }
    loops_->accumulate(in + i * w.in_stride * in_bytes_, inner.in, table + i * row, lanes);
  };
  for (std::int64_t i = 0; i < w.n; ++i) extend(prefix, i, i - 1, i % w.size == 0);
  for (std::int64_t i = w.n - 1; i >= 0; --i) {
    extend(suffix, i, i + 1, i == w.n - 1 || (i + 1) % w.size == 0);
  }
  std::byte* acc = workspace.get(kLaneBlock * 8);
  for (std::int64_t o = 0; o < w.m; ++o) {
    const std::int64_t left = std::max<std::int64_t>(o - w.low, 0);
    const std::int64_t right = std::min(o - w.low + w.size, w.n) - 1;
    if (left > right) {
      fill(acc, lanes);
    } else if (left / w.size != right / w.size) {
      std::memcpy(acc, suffix + left * row, static_cast<std::size_t>(row));
      loops_->merge(prefix + right * row, acc, lanes);
    } else {
      const std::byte* whole = left % w.size == 0 ? prefix + right * row : suffix + left * row;
      std::memcpy(acc, whole, static_cast<std::size_t>(row));
    }
    store(acc, out + o * w.out_stride * in_bytes_, inner.out, lanes);
  }
}

void checkWindow(StepCheck& check) {
  const auto in = check.read(0);
  const auto out = check.written(1).hasTypeOf(in).isContiguous();
  reduction::checkReducer(check, in->type);
  if (check.flag("average")) in.isFloating();
  Window::check(check, in, out);
  if (check.numOperands() == 2) return;
  check.operands(3);
  check.read(2).isOne().hasTypeOf(in);
}
const RegisterKernel kWindow{"popx.reduce_window", makeKernel<NamedWindow>, checkWindow};

}  // namespace

}  // namespace ipujax::engine
