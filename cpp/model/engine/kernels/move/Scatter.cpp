#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "engine/Half.hpp"
#include "engine/Workspace.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/move/Copy.hpp"
#include "engine/kernels/move/CopyCombine.hpp"
#include "engine/kernels/move/CopyWindows.hpp"
#include "engine/kernels/move/WrappedCopy.hpp"

/// The host kernels of popx::scatter and of popops' dynamic and multi updates.
/// Operands: n operands (read-write), indices, n updates, and for "scaled_add" the factor.
namespace ipujax::engine {
namespace {

using expr::ExprEvaluator;
using expr::ExprProgram;

using Pointers = std::span<std::byte* const>;

constexpr std::int64_t kParallelBytes = 512 * 1024;
constexpr std::int64_t kParallelWindowBytes = 128;

/// Walks a window as runs: fn(update byte offset, operand byte offset, CopyDim of the run). Runs go
/// along the operand's smallest stride. src is the update, dst the operand.
class WindowRuns {
 public:
  WindowRuns(const Windows& windows, std::int64_t element_bytes) {
    std::vector<CopyDim> dims;
    for (std::size_t i = 0; i < windows.shape().size(); ++i)
      dims.push_back({windows.shape()[i], windows.smallStrides()[i] * element_bytes,
                      windows.largeStrides()[i] * element_bytes});
    outer_ = orderedAndMerged(dims);
    run_ = outer_.empty() ? CopyDim{1, element_bytes, element_bytes} : outer_.back();
    if (!outer_.empty()) outer_.pop_back();
  }

  template <class F>
  void forEach(const F& fn) const {
    forEachOffset(outer_, [&](std::int64_t src, std::int64_t dst) { fn(src, dst, run_); });
  }
  /// Whether a window is one run, contiguous on both sides.
  bool isOnePiece(std::int64_t element_bytes) const {
    return outer_.empty() && run_.src == element_bytes && run_.dst == element_bytes;
  }

 private:
  std::vector<CopyDim> outer_;
  CopyDim run_;
};

/// Calls work(first, last), which handles the windows that start at numbers [first, last), in their
/// order: once for all, or, where windows with different starts are disjoint, on several threads.
template <class F>
void inOrder(RunContext& context, const Windows& windows, std::int64_t window_bytes,
             const F& work) {
  const std::int64_t threads = context.pool.numThreads();
  const std::int64_t starts = windows.numStarts();
  // Every thread reads all indices, so threads pay off only if a window is much more work.
  const bool parallel = windows.disjoint() && starts >= threads && threads > 1 &&
                        window_bytes >= kParallelWindowBytes &&
                        windows.count() * window_bytes >= kParallelBytes;
  if (!parallel) return work(std::int64_t{0}, std::numeric_limits<std::int64_t>::max());
  context.pool.parallelFor(threads, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t last = end == threads ? starts : starts / threads * end;
    work(starts / threads * begin, last);
  });
}

/// Calls fn on the windows that start in [first, last), in order, some at a time.
template <class F>
void eachBatchOfMoves(const Windows& windows, const std::byte* indices, std::int64_t first,
                      std::int64_t last, const F& fn) {
  constexpr std::size_t kMoves = 256;
  std::array<ElementMove, kMoves + 1> moves;
  std::size_t n = 0;
  windows.forEach(indices, 0, windows.count(),
                  [&](std::int64_t large, std::int64_t small, std::int64_t start) {
                    moves[n] = {large, small};
                    n += start >= first && start < last ? 1 : 0;  // a branch would be unpredictable
                    if (n < kMoves) return;
                    fn(std::span<const ElementMove>(moves.data(), n));
                    n = 0;
                  });
  fn(std::span<const ElementMove>(moves.data(), n));
}

void moveElements(std::size_t size, const std::byte* src, std::byte* dst,
                  std::span<const ElementMove> moves) {
  withBytes(size, [&]<class T>(T) {
    for (const ElementMove& m : moves) std::memcpy(dst + m.dst, src + m.src, sizeof(T));
  });
}

class ReplaceKernel final : public Kernel {
 public:
  ReplaceKernel(const StepDesc& step, const Windows& windows)
      : windows_(windows),
        copy_(sizeOf(step.operands[0].type), windows_.shape(), windows_.smallStrides(),
              windows_.largeStrides()) {}

  void run(RunContext& context, Pointers p) const override {
    if (windows_.count() == 1 && copy_.bytes() >= kParallelBytes) {
      windows_.forEach(p[1], 0, 1, [&](std::int64_t large, std::int64_t small, std::int64_t) {
        copy_.run(context.pool, p[2] + small, p[0] + large);
      });
      return;
    }
    inOrder(context, windows_, copy_.bytes(), [&](std::int64_t first, std::int64_t last) {
      if (windows_.windowElements() == 1) {
        return eachBatchOfMoves(windows_, p[1], first, last, [&](std::span<const ElementMove> m) {
          moveElements(static_cast<std::size_t>(copy_.bytes()), p[2], p[0], m);
        });
      }
      windows_.forEach(p[1], 0, windows_.count(),
                       [&](std::int64_t large, std::int64_t small, std::int64_t start) {
                         if (start >= first && start < last) copy_.run(p[2] + small, p[0] + large);
                       });
    });
  }

 private:
  Windows windows_;
  StridedCopy copy_;
};

double readScale(ElementType type, const std::byte* p) {
  return withElement(type, [&]<class T>(T value) -> double {
    std::memcpy(&value, p, sizeof(T));
    if (type == ElementType::kHalf) return halfToFloat(static_cast<std::uint16_t>(value));
    return static_cast<double>(value);
  });
}

class CombineKernel final : public Kernel {
 public:
  CombineKernel(const StepDesc& step, const Windows& windows, Combiner combiner, bool scaled)
      : windows_(windows),
        runs_(windows_, static_cast<std::int64_t>(sizeOf(step.operands[0].type))),
        combiner_(combiner),
        bytes_(windows_.windowElements() *
               static_cast<std::int64_t>(sizeOf(step.operands[0].type))),
        is_one_piece_(runs_.isOnePiece(static_cast<std::int64_t>(sizeOf(step.operands[0].type)))) {
    if (!scaled) return;
    scale_type_ = step.operands[3].type;
  }

  void run(RunContext& context, Pointers p) const override {
    const double scale = scale_type_ ? readScale(*scale_type_, p[3]) : 1.0;
    inOrder(context, windows_, 2 * bytes_, [&](std::int64_t first, std::int64_t last) {
      if (windows_.windowElements() == 1 || is_one_piece_) return batches(p, first, last, scale);
      windows_.forEach(p[1], 0, windows_.count(),
                       [&](std::int64_t large, std::int64_t small, std::int64_t start) {
                         if (start >= first && start < last)
                           window(p[0] + large, p[2] + small, scale);
                       });
    });
  }

 private:
  void window(std::byte* dst, const std::byte* src, double scale) const {
    runs_.forEach([&](std::int64_t s, std::int64_t d, const CopyDim& run) {
      combiner_.run(dst + d, src + s, run.n, run.dst, run.src, scale);
    });
  }

  void batches(Pointers p, std::int64_t first, std::int64_t last, double scale) const {
    const std::int64_t n = windows_.windowElements();
    eachBatchOfMoves(windows_, p[1], first, last, [&](std::span<const ElementMove> m) {
      const auto count = static_cast<std::int64_t>(m.size());
      if (n == 1)
        combiner_.elements(p[0], p[2], m.data(), count, scale);
      else
        combiner_.runs(p[0], p[2], m.data(), count, n, scale);
    });
  }

  Windows windows_;
  WindowRuns runs_;
  Combiner combiner_;
  std::int64_t bytes_;
  bool is_one_piece_;  ///< each window
  std::optional<ElementType> scale_type_;
};

void copyRun(std::size_t size, const std::byte* src, std::int64_t src_stride, std::byte* dst,
             std::int64_t dst_stride, std::int64_t n) {
  const auto bytes = static_cast<std::int64_t>(size);
  if (src_stride == bytes && dst_stride == bytes) {
    std::memcpy(dst, src, static_cast<std::size_t>(n) * size);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(dst + i * dst_stride, src + i * src_stride, size);
}

/// A scatter with any body. Elements are staged in blocks, which span windows while none repeats.
/// With several operands all arrays are row-major and offsets scale by the element size.
class ExprKernel final : public Kernel {
 public:
  ExprKernel(const StepDesc& step, const Windows& windows, const ExprProgram& program, bool unique)
      : windows_(windows),
        runs_(windows_, static_cast<std::int64_t>(sizeOf(step.operands[0].type))),
        evaluator_(program),
        num_(step.operands.size() / 2),
        unique_(unique && windows_.disjoint()),
        batched_(windows_.disjoint() && windows_.windowElements() <= kBlock) {
    for (std::size_t i = 0; i < num_; ++i) {
      const auto& operand = step.operands[i];
      sizes_.push_back(sizeOf(operand.type));
    }
  }

  void run(RunContext& context, Pointers p) const override {
    const std::int64_t bytes =
        8 * windows_.windowElements();  // an expression costs more than a copy
    inOrder(context, windows_, bytes, [&](std::int64_t first, std::int64_t last) {
      Stage stage(*this, p);
      if (windows_.windowElements() == 1) {
        eachBatchOfMoves(windows_, p[num_], first, last, [&](std::span<const ElementMove> m) {
          for (std::size_t done = 0; done < m.size();) done += stage.runElements(m.subspan(done));
        });
        return;
      }
      windows_.forEach(p[num_], 0, windows_.count(),
                       [&](std::int64_t large, std::int64_t small, std::int64_t start) {
                         if (start < first || start >= last) return;
                         stage.begin(large);
                         runs_.forEach([&](std::int64_t s, std::int64_t d, const CopyDim& run) {
                           stage.add(large + d, small + s, run);
                         });
                       });
      stage.flush();
    });
  }

 private:
  static constexpr std::int64_t kBlock = ExprEvaluator::kBlock;

  struct Segment {
    std::int64_t large, at, n, stride;
  };

  class Stage {
   public:
    Stage(const ExprKernel& kernel, Pointers pointers) : k_(kernel), p_(pointers) {
      for (std::size_t i = 0; i < 2 * k_.num_; ++i) in_.push_back(workspace_.get(kBlock * 8));
      for (std::size_t i = 0; i < k_.num_; ++i) out_.push_back(workspace_.get(kBlock * 8));
      ins_.assign(in_.begin(), in_.end());
    }

    /// Call before adding a window's elements: flushes if they might be staged already.
    void begin(std::int64_t large) {
      if (k_.unique_) return;
      if (!k_.batched_) return flush();
      if (used_ + k_.windows_.windowElements() > kBlock || !claim(large)) {
        flush();
        claim(large);
      }
    }

    /// Performs the first moves, as long as they go to different places; returns their number.
    std::size_t runElements(std::span<const ElementMove> moves) {
      ++now_;
      std::size_t n = moves.size();
      for (std::size_t i = 0; i < n && !k_.unique_; ++i) {
        if (!k_.batched_ ? i > 0 : !claim(moves[i].dst)) n = i;
      }
      std::array<ElementMove, kBlock> in, update, back;
      for (std::size_t i = 0; i < k_.num_; ++i) {
        const auto size = static_cast<std::int64_t>(k_.sizes_[i]);
        for (std::size_t j = 0; j < n; ++j) {
          const auto at = static_cast<std::int64_t>(j) * size;
          in[j] = {at, scaled(moves[j].dst, i)};
          update[j] = {at, scaled(moves[j].src, i)};
        }
        moveElements(k_.sizes_[i], p_[i], in_[i], {in.data(), n});
        moveElements(k_.sizes_[i], p_[k_.num_ + 1 + i], in_[k_.num_ + i], {update.data(), n});
      }
      k_.evaluator_.run(ins_, out_, static_cast<std::int64_t>(n));
      for (std::size_t i = 0; i < k_.num_; ++i) {
        const auto size = static_cast<std::int64_t>(k_.sizes_[i]);
        for (std::size_t j = 0; j < n; ++j)
          back[j] = {scaled(moves[j].dst, i), static_cast<std::int64_t>(j) * size};
        moveElements(k_.sizes_[i], out_[i], p_[i], {back.data(), n});
      }
      return n;
    }

    void add(std::int64_t large, std::int64_t small, const CopyDim& run) {
      for (std::int64_t done = 0; done < run.n;) {
        const std::int64_t n = std::min(run.n - done, kBlock - used_);
        load(large + done * run.dst, small + done * run.src, run, n);
        segments_[num_segments_++] = {large + done * run.dst, used_, n, run.dst};
        used_ += n;
        done += n;
        if (used_ == kBlock) flush();
      }
    }

    void flush() {
      ++now_;
      if (used_ == 0) return;
      k_.evaluator_.run(ins_, out_, used_);
      for (std::size_t i = 0; i < k_.num_; ++i) {
        const auto size = static_cast<std::int64_t>(k_.sizes_[i]);
        for (std::size_t s = 0; s < num_segments_; ++s) {
          const Segment& g = segments_[s];
          copyRun(k_.sizes_[i], out_[i] + g.at * size, size, p_[i] + scaled(g.large, i),
                  scaled(g.stride, i), g.n);
        }
      }
      used_ = 0;
      num_segments_ = 0;
    }

   private:
    /// Records the window; false if it was recorded before.
    bool claim(std::int64_t large) {
      auto slot = static_cast<std::uint64_t>(large) * 0x9e3779b97f4a7c15ull >> (64 - kSeenBits);
      while (round_[slot] == now_) {
        if (seen_[slot] == large) return false;
        slot = (slot + 1) % seen_.size();
      }
      round_[slot] = now_;
      seen_[slot] = large;
      return true;
    }
    std::int64_t scaled(std::int64_t bytes, std::size_t i) const {
      if (k_.sizes_[i] == k_.sizes_[0]) return bytes;
      return bytes / static_cast<std::int64_t>(k_.sizes_[0]) *
             static_cast<std::int64_t>(k_.sizes_[i]);
    }
    void load(std::int64_t large, std::int64_t small, const CopyDim& run, std::int64_t n) {
      for (std::size_t i = 0; i < k_.num_; ++i) {
        const auto size = static_cast<std::int64_t>(k_.sizes_[i]);
        copyRun(k_.sizes_[i], p_[i] + scaled(large, i), scaled(run.dst, i), in_[i] + used_ * size,
                size, n);
        copyRun(k_.sizes_[i], p_[k_.num_ + 1 + i] + scaled(small, i), scaled(run.src, i),
                in_[k_.num_ + i] + used_ * size, size, n);
      }
    }

    const ExprKernel& k_;
    Pointers p_;
    Workspace workspace_;
    std::vector<std::byte*> in_, out_;
    std::vector<const std::byte*> ins_;
    std::array<Segment, kBlock> segments_;
    std::size_t num_segments_ = 0;
    std::int64_t used_ = 0;
    /// The windows staged since the last flush, by their starts: an open-addressing hash table in
    /// which entries of earlier rounds count as empty.
    static constexpr int kSeenBits = 11;
    std::array<std::int64_t, 1 << kSeenBits> seen_;
    std::array<std::uint32_t, 1 << kSeenBits> round_{};
    std::uint32_t now_ = 1;
  };

  Windows windows_;
  WindowRuns runs_;
  ExprEvaluator evaluator_;
  std::size_t num_;
  bool unique_;
  bool batched_;  ///< several windows may be staged at a time
  std::vector<std::size_t> sizes_;
};

std::unique_ptr<Kernel> makeScatter(const StepDesc& step) {
  const std::string& body = step.attributes.text("body");
  const bool scaled = body == "scaled_add";
  const std::size_t num = (step.operands.size() - (scaled ? 1 : 0)) / 2;
  if (outsideOf(step.attributes) == Outside::kWrap)
    return std::make_unique<WrappedCopyKernel>(step);
  const Windows windows(step.operands[0], step.operands[num], step.operands[num + 1],
                        step.attributes);
  if (num == 1 && body == "replace") return std::make_unique<ReplaceKernel>(step, windows);
  if (body == "expr") {
    return std::make_unique<ExprKernel>(step, windows,
                                        ExprProgram::fromIntegers(step.attributes.integers("expr")),
                                        step.attributes.integer("unique") != 0);
  }
  const Combiner combiner = combinerOf(body, step.operands[0].type);
  return std::make_unique<CombineKernel>(step, windows, combiner, scaled);
}

void checkBody(const StepCheck& check, std::size_t num) {
  const std::string& body = check.text("body");
  const auto operand = check.updated(0);
  check.flag("unique");
  if (body == "expr") {
    std::vector<ElementType> types;
    for (std::size_t i = 0; i < num; ++i) types.push_back(check.updated(i)->type);
    std::vector<ElementType> both = types;
    both.insert(both.end(), types.begin(), types.end());
    check.program("expr", both, types);
    return;
  }
  check.need(num == 1, "an expression as the body of several operands");
  if (body != "replace") combinerOf(body, operand->type);
  if (body == "scaled_add")
    check.read(3).isOne().isOf(
        {ElementType::kHalf, ElementType::kFloat, ElementType::kInt32, ElementType::kUInt32});
}

void checkScatter(StepCheck& check) {
  const std::size_t scale = check.text("body") == "scaled_add" ? 1 : 0;
  const std::size_t num = check.numOperands() / 2 - (scale > 0 && check.numOperands() > 0 ? 1 : 0);
  check.need(num > 0, "operands, indices and updates");
  check.operands(2 * num + 1 + scale);
  const auto operand = check.updated(0);
  const auto update = check.read(num + 1);
  for (std::size_t i = 0; i < num; ++i) {
    const auto large = check.updated(i).hasShapeOf(operand);
    const auto small = check.read(num + 1 + i).hasShapeOf(update).hasTypeOf(large);
    if (num == 1) continue;
    large.isContiguous();  // offsets are counted in elements of the first
    small.isContiguous();
  }
  const Outside outside = Windows::check(check, operand, check.read(num), update);
  checkBody(check, num);
  if (outside != Outside::kWrap) return;
  WrappedCopyKernel::check(check);
  check.need(num == 1 && check.text("body") == "replace",
             "a window that is replaced where it goes on at the start");
}

const RegisterKernel kScatter{"popx.scatter", makeScatter, checkScatter, KernelRole::kUpdates};
const RegisterKernel kDynamicUpdate{"popops.dynamic_update", makeScatter, checkScatter,
                                    KernelRole::kUpdateOfRow};
const RegisterKernel kRemoteWrite{"engine.remote_write", makeScatter, checkScatter};
const RegisterKernel kMultiUpdate{"popops.multi_update", makeScatter, checkScatter};

}  // namespace
}  // namespace ipujax::engine
