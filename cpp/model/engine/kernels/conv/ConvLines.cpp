#include <algorithm>
#include <type_traits>
#include <vector>

#include "engine/ThreadPool.hpp"
#include "engine/Workspace.hpp"
#include "engine/blas/MicroKernel.hpp"
#include "engine/blas/Pack.hpp"
#include "engine/kernels/conv/ConvSubproblem.hpp"
#include "engine/simd/VectorOps.hpp"

/// The usual way: rows of the product are consecutive outputs of one line, columns are output
/// channels, and the sum runs over kernel elements and input channels.
namespace ipujax::engine::convolution {
namespace {

constexpr std::int64_t kImageWords = 1 << 16;  ///< padded input kept in the second-level cache
constexpr std::int64_t kTaskWork = 1 << 18;    ///< multiply-adds worth a thread
constexpr std::int64_t kFewChannels = 8;       ///< fewer are gathered one channel's line at a time
constexpr int kWidest = blas::kMaxPanels;

/// Packs a panel of one group's weights, laid out as [panel][kd][kh][kw][ci][16].
template <class M>
void packWeights(const Subproblem& p, std::int64_t group, std::int64_t panel, blas::Word<M>* out) {
  constexpr std::int64_t kPanel = blas::kPanel<M>;
  const auto& w = p.weights;
  const std::int64_t col = panel * kPanel;
  const std::int64_t cols = std::min(kPanel, p.out_channels - col);
  for (std::int64_t d = 0; d < p.kernel[0]; ++d)
    for (std::int64_t h = 0; h < p.kernel[1]; ++h)
      for (std::int64_t x = 0; x < p.kernel[2]; ++x) {
        const std::int64_t offset =
            group * w.group + d * w.space[0] + h * w.space[1] + x * w.space[2];
        const std::size_t size = sizeOf(w.type);
        const blas::ConstMatrix tap{
            static_cast<const char*>(w.data) + offset * static_cast<std::int64_t>(size), w.type,
            w.channel, w.batch};
        blas::packPanel<M>(tap, 0, p.in_channels, col, cols, out);
        out += blas::wordsOf<M>(p.in_channels) * kPanel;
      }
}

/// Where the inputs of a block of lines lie, for the micro kernel.
template <class W>
struct Block {
  const W* data = nullptr;
  std::int64_t line = 0;  ///< from one output line to the next
  std::int64_t row = 0;   ///< from one output to the next
};

template <class M>
class Lines {
  using W = blas::Word<M>;
  static constexpr std::int64_t kPanel = blas::kPanel<M>;

 public:
  Lines(const Subproblem& p) : p_(p), channels_(blas::wordsOf<M>(p.in_channels)) {
    const auto& in = p.in;
    width_ = (p.output[2] - 1) * p.stride[2] + (p.kernel[2] - 1) * p.dilation[2] + 1;
    direct_in_ = blas::isWord<M>(in.type) && (in.channel == 1 || p.in_channels == 1) && !clipped();
    direct_out_ = blas::isSum<M>(p.out.type) && (p.out.channel == 1 || p.out_channels == 1) &&
                  !p.half_partials;
    planes_ = p.kernel[0];
    const std::int64_t row_words = width_ * channels_ * planes_;
    const std::int64_t overlap = (p.kernel[1] - 1) * p.dilation[1] + 1;
    lines_ = std::clamp<std::int64_t>((kImageWords / row_words - overlap) / p.stride[1] + 1, 1,
                                      p.output[1]);
    const std::int64_t line_work = p.output[2] * p.out_channels * p.in_channels * p.taps();
    const std::int64_t total = p.batch * p.output[0] * p.output[1];
    // Enough tasks for the threads to share evenly, each still worth its start.
    const std::int64_t wanted =
        std::max<std::int64_t>(1, kTaskWork / std::max<std::int64_t>(line_work, 1));
    lines_ = std::min(lines_, std::max(wanted, ceilDiv(total, 64)));
    lines_ = ceilDiv(p.output[1], ceilDiv(p.output[1], lines_));
    height_ = (lines_ - 1) * p.stride[1] + overlap;
    makeSegments();
  }

  void run(ThreadPool& pool) const {
    const std::int64_t panels = ceilDiv(p_.out_channels, kPanel);
    const std::int64_t panel_words = p_.taps() * channels_ * kPanel;
    const std::int64_t blocks = ceilDiv(p_.output[1], lines_);
    const std::int64_t tasks = p_.batch * p_.output[0] * blocks;
    const std::int64_t task_work = std::max<std::int64_t>(
        1, lines_ * p_.output[2] * p_.out_channels * p_.in_channels * p_.taps());
    Workspace workspace;
    W* weights = workspace.get<W>(panels * panel_words * p_.groups);
    pool.parallelFor(panels * p_.groups, ceilDiv(1 << 14, panel_words + 1),
                     [&](std::int64_t begin, std::int64_t end) {
                       for (std::int64_t i = begin; i < end; ++i)
                         packWeights<M>(p_, i / panels, i % panels, weights + i * panel_words);
                     });
    pool.parallelFor(tasks * p_.groups, ceilDiv(kTaskWork, task_work),
                     [&](std::int64_t begin, std::int64_t end) {
                       for (std::int64_t t = begin; t < end; ++t) {
                         const std::int64_t g = t / tasks;
                         const std::int64_t rest = t % tasks;
                         task(g, rest / (p_.output[0] * blocks), rest / blocks % p_.output[0],
                              rest % blocks * lines_, weights + g * panels * panel_words);
                       }
                     });
  }

 private:
  bool clipped() const {
    for (int a = 0; a < 3; ++a) {
      const std::int64_t last =
          (p_.output[a] - 1) * p_.stride[a] + (p_.kernel[a] - 1) * p_.dilation[a] - p_.padding[a];
      if (p_.padding[a] > 0 || last >= p_.input[a]) return true;
    }
    return false;
  }

  void makeSegments() {
    const auto& in = p_.in;
    const std::int64_t ci = channels_;
    const std::int64_t x_step = direct_in_ ? in.space[2] : ci;
    const bool joined = p_.kernel[2] == 1 || (p_.dilation[2] == 1 && x_step == ci);
    depth_ = joined ? p_.kernel[2] * ci : ci;
    for (std::int64_t d = 0; d < p_.kernel[0]; ++d)
      for (std::int64_t h = 0; h < p_.kernel[1]; ++h)
        for (std::int64_t x = 0; x < (joined ? 1 : p_.kernel[2]); ++x) {
          const std::int64_t plane =
              direct_in_ ? d * p_.dilation[0] * in.space[0] + h * p_.dilation[1] * in.space[1]
                         : (d * height_ + h * p_.dilation[1]) * width_ * ci;
          segments_.push_back(plane + x * p_.dilation[2] * x_step);
        }
  }

  /// Fills one padded line of the input, [w][words of channels].
  void fillLine(std::int64_t offset, W* line) const {
    const std::int64_t begin = std::clamp<std::int64_t>(p_.padding[2], 0, width_);
    const std::int64_t end = std::clamp<std::int64_t>(p_.input[2] + p_.padding[2], begin, width_);
    std::fill(line, line + begin * channels_, W(0));
    std::fill(line + end * channels_, line + width_ * channels_, W(0));
    const std::int64_t first = offset + (begin - p_.padding[2]) * p_.in.space[2];
    if (begin < end) fillPixels(first, end - begin, line + begin * channels_);
  }

  void fillPixels(std::int64_t first, std::int64_t count, W* out) const {
    const auto& in = p_.in;
    const std::int64_t ci = p_.in_channels;
    if (in.channel == 1 && in.space[2] == ci && ci % M::kPerWord == 0) {
      blas::loadRow<M>(in.data, in.type, first, 1, count * ci, out);
    } else if ((in.channel == 1 || in.space[2] != 1) && ci >= kFewChannels) {
      for (std::int64_t x = 0; x < count; ++x)
        blas::loadRow<M>(in.data, in.type, first + x * in.space[2], in.channel, ci,
                         out + x * channels_);
    } else {
      Workspace workspace;
      W* row = channels_ == 1 ? out : workspace.get<W>(count);
      for (std::int64_t c = 0; c < channels_; ++c) {
        const std::int64_t left = std::min(M::kPerWord, ci - c * M::kPerWord);
        blas::loadAcross<M>(in.data, in.type, first + c * M::kPerWord * in.channel, in.channel,
                            left, in.space[2], count, row);
        if (channels_ == 1) break;
        for (std::int64_t x = 0; x < count; ++x) out[x * channels_ + c] = row[x];
      }
    }
  }

  Block<W> gather(std::int64_t g, std::int64_t n, std::int64_t od, std::int64_t oh,
                  std::int64_t lines, Workspace& workspace) const {
    const auto& in = p_.in;
    const std::int64_t base = n * in.batch + g * in.group;
    const std::int64_t d0 = od * p_.stride[0] - p_.padding[0];
    const std::int64_t h0 = oh * p_.stride[1] - p_.padding[1];
    if (direct_in_) {
      const W* data = static_cast<const W*>(in.data) + base + d0 * in.space[0] + h0 * in.space[1] -
                      p_.padding[2] * in.space[2];
      return {data, p_.stride[1] * in.space[1], p_.stride[2] * in.space[2]};
    }
    const std::int64_t line_words = width_ * channels_;
    const std::int64_t height =
        (lines - 1) * p_.stride[1] + (p_.kernel[1] - 1) * p_.dilation[1] + 1;
    W* image = workspace.get<W>(planes_ * height_ * line_words);
    for (std::int64_t d = 0; d < planes_; ++d)
      for (std::int64_t h = 0; h < height; ++h) {
        W* line = image + (d * height_ + h) * line_words;
        const std::int64_t id = d0 + d * p_.dilation[0];
        const std::int64_t ih = h0 + h;
        if (id < 0 || id >= p_.input[0] || ih < 0 || ih >= p_.input[1]) {
          std::fill(line, line + line_words, W(0));
        } else {
          fillLine(base + id * in.space[0] + ih * in.space[1], line);
        }
      }
    return {image, p_.stride[1] * line_words, p_.stride[2] * channels_};
  }

  /// Multiplies one group of panels with all lines of a block.
  void sweep(const Block<W>& block, std::int64_t lines, const blas::MicroCall<W>& prepared, W* c,
             std::int64_t c_line, std::int64_t panels) const {
    const auto& table = blas::micro<M>();
    const std::int64_t ow = p_.output[2];
    const std::int64_t rows = ceilDiv(ow, ceilDiv(ow, table.max_rows[panels]));
    blas::MicroCall<W> call = prepared;
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t x = 0; x < ow; x += rows) {
        call.a = block.data + line * block.line + x * block.row;
        call.c = c + line * c_line + x * call.c_row;
        table.fn[panels][std::min(rows, ow - x)](call);
      }
  }

  std::int64_t panelGroup() const {
    const auto& table = blas::micro<M>();
    if (table.panels < kWidest) return table.panels;
    const std::int64_t wanted = ceilDiv(p_.out_channels, kPanel);
    if (p_.output[2] <= table.max_rows[kWidest] && wanted >= kWidest) return kWidest;
    return wanted == 3 && p_.output[2] <= table.max_rows[3] ? 3 : 2;
  }

  void task(std::int64_t g, std::int64_t n, std::int64_t od, std::int64_t oh,
            const W* weights) const {
    const std::int64_t lines = std::min(lines_, p_.output[1] - oh);
    Workspace workspace;
    const Block<W> block = gather(g, n, od, oh, lines, workspace);
    const std::int64_t co = p_.out_channels;
    const std::int64_t ow = p_.output[2];
    const std::int64_t first =
        n * p_.out.batch + g * p_.out.group + od * p_.out.space[0] + oh * p_.out.space[1];
    W* c = direct_out_ ? static_cast<W*>(p_.out.data) + first : workspace.get<W>(lines * ow * co);
    const std::int64_t c_line = direct_out_ ? p_.out.space[1] : ow * co;
    blas::MicroCall<W> call;
    call.a_row = block.row;
    call.kc = depth_;
    call.c_row = direct_out_ ? p_.out.space[2] : co;
    call.b_k = kPanel;
    call.b_panel = p_.taps() * channels_ * kPanel;
    const std::int64_t group = panelGroup();
    // Half partials: the sums are rounded after each kernel row with all its channels.
    const auto num_segments = static_cast<std::int64_t>(segments_.size());
    const std::int64_t per_round = p_.half_partials ? 1 : num_segments;
    for (std::int64_t s = 0; s < num_segments; s += per_round) {
      call.segments = segments_.data() + s;
      call.num_segments = per_round;
      call.accumulate = s > 0;
      for (std::int64_t j = 0; j < co; j += group * kPanel) {
        call.cols = std::min(group * kPanel, co - j);
        call.b = weights + j / kPanel * call.b_panel + s * depth_ * kPanel;
        sweep(block, lines, call, c + j, c_line, ceilDiv(call.cols, kPanel));
      }
      if constexpr (std::is_same_v<M, blas::Floats>) {
        if (p_.half_partials) simd::roundToHalf(c, lines * ow * co);
      }
    }
    if (!direct_out_) scatter(c, first, lines);
  }

  void scatter(const W* c, std::int64_t first, std::int64_t lines) const {
    const auto& out = p_.out;
    const std::int64_t co = p_.out_channels;
    const std::int64_t ow = p_.output[2];
    const bool packed = out.channel == 1 && out.space[2] == co;
    Workspace workspace;
    W* row = workspace.get<W>(ow);
    for (std::int64_t line = 0; line < lines; ++line) {
      const W* source = c + line * ow * co;
      const std::int64_t offset = first + line * out.space[1];
      if (packed) {
        blas::storeRow<typename M::Sums>(source, out.data, out.type, offset, 1, ow * co);
      } else if (out.channel == 1) {
        for (std::int64_t x = 0; x < ow; ++x)
          blas::storeRow<typename M::Sums>(source + x * co, out.data, out.type,
                                           offset + x * out.space[2], 1, co);
      } else {
        for (std::int64_t j = 0; j < co; ++j) {
          for (std::int64_t x = 0; x < ow; ++x) row[x] = source[x * co + j];
          blas::storeRow<typename M::Sums>(row, out.data, out.type, offset + j * out.channel,
                                           out.space[2], ow);
        }
      }
    }
  }

  const Subproblem& p_;
  std::int64_t channels_;  ///< words of the input channels
  std::int64_t width_ = 0, height_ = 0, planes_ = 0, lines_ = 1, depth_ = 0;
  bool direct_in_ = false, direct_out_ = false;
  std::vector<std::int64_t> segments_;
};

}  // namespace

template <class M>
void runAlongLines(ThreadPool& pool, const Subproblem& problem) {
  Lines<M>(problem).run(pool);
}

template void runAlongLines<blas::Floats>(ThreadPool&, const Subproblem&);
template void runAlongLines<blas::Doubles>(ThreadPool&, const Subproblem&);
template void runAlongLines<blas::Ints>(ThreadPool&, const Subproblem&);
template void runAlongLines<blas::LongInts>(ThreadPool&, const Subproblem&);
template void runAlongLines<blas::ShortPairs>(ThreadPool&, const Subproblem&);

}  // namespace ipujax::engine::convolution
