#include <algorithm>
#include <type_traits>

#include "engine/ThreadPool.hpp"
#include "engine/Workspace.hpp"
#include "engine/blas/MicroKernel.hpp"
#include "engine/blas/Pack.hpp"
#include "engine/kernels/conv/ConvSubproblem.hpp"
#include "engine/simd/VectorOps.hpp"

/// For few outputs and a large kernel, as in gradients with respect to weights: rows of the product
/// are the batch (there the input channels), and the sum runs over channels and kernel elements.
namespace ipujax::engine::convolution {
namespace {

constexpr std::int64_t kImageWords = 1 << 16;
constexpr std::int64_t kDepth = 256;  ///< kernel elements per pass
constexpr std::int64_t kMaxKernelRows = kDepth;
constexpr std::int64_t kSumWords = 1 << 22;  ///< most that all private sums take
constexpr std::int64_t kMaxChunks = 16;

template <class M>
class Batch {
  using W = blas::Word<M>;
  static constexpr std::int64_t kPanel = blas::kPanel<M>;

 public:
  Batch(const Subproblem& p) : p_(p) {
    width_ = (p.output[2] - 1) * p.stride[2] + (p.kernel[2] - 1) * p.dilation[2] + 1;
    const std::int64_t sums = p.positions() * p.batch * p.out_channels;
    // The shares depend on sizes alone, so the sums are the same for any number of threads.
    chunks_ = std::clamp<std::int64_t>(kSumWords / std::max<std::int64_t>(sums, 1), 1,
                                       std::min(kMaxChunks, p.in_channels));
    rows_ = chunks_ >= 4 ? p.batch : std::min<std::int64_t>(p.batch, 56);
    const std::int64_t overlap = (p.output[1] - 1) * p.stride[1] + 1;
    const std::int64_t row_words = width_ * rows_;
    kernel_rows_ =
        std::clamp<std::int64_t>(std::min((kImageWords / row_words - overlap) / p.dilation[1] + 1,
                                          ceilDiv(kDepth, p.kernel[2])),
                                 1, p.kernel[1]);
    height_ = overlap + (kernel_rows_ - 1) * p.dilation[1];
  }

  void run(ThreadPool& pool) const {
    const std::int64_t sums = p_.positions() * p_.batch * p_.out_channels;
    const std::int64_t row_blocks = ceilDiv(p_.batch, rows_);
    Workspace workspace;
    W* all = workspace.get<W>(sums * chunks_);
    for (std::int64_t g = 0; g < p_.groups; ++g) {
      pool.parallelFor(chunks_ * row_blocks, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t t = begin; t < end; ++t)
          task(g, t / row_blocks, t % row_blocks * rows_, all + t / row_blocks * sums);
      });
      pool.parallelFor(p_.positions() * p_.batch, ceilDiv(1 << 14, p_.out_channels * chunks_),
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t r = begin; r < end; ++r) finish(g, r, all, sums);
                       });
    }
  }

 private:
  /// Gathers input rows [h0, h0 + height) of plane `id`, channel c, as [h][w][batch rows].
  void gather(std::int64_t g, std::int64_t c, std::int64_t id, std::int64_t h0, std::int64_t height,
              std::int64_t n0, std::int64_t rows, W* image) const {
    const auto& in = p_.in;
    const std::int64_t base = g * in.group + c * in.channel + n0 * in.batch + id * in.space[0];
    const std::int64_t line_words = width_ * rows;
    const std::int64_t begin = std::clamp<std::int64_t>(p_.padding[2], 0, width_);
    const std::int64_t end = std::clamp<std::int64_t>(p_.input[2] + p_.padding[2], begin, width_);
    Workspace workspace;
    W* row = workspace.get<W>(end - begin);
    for (std::int64_t h = 0; h < height; ++h) {
      W* line = image + h * line_words;
      const std::int64_t ih = h0 + h;
      if (id < 0 || id >= p_.input[0] || ih < 0 || ih >= p_.input[1] || begin == end) {
        std::fill(line, line + line_words, W(0));
        continue;
      }
      std::fill(line, line + begin * rows, W(0));
      std::fill(line + end * rows, line + line_words, W(0));
      const std::int64_t first = base + ih * in.space[1] + (begin - p_.padding[2]) * in.space[2];
      W* out = line + begin * rows;
      if (in.batch == 1 && in.space[2] == rows) {
        blas::loadRow<M>(in.data, in.type, first, 1, (end - begin) * rows, out);
      } else if (in.batch == 1 || in.space[2] != 1) {
        for (std::int64_t x = 0; x < end - begin; ++x)
          blas::loadRow<M>(in.data, in.type, first + x * in.space[2], in.batch, rows,
                           out + x * rows);
      } else {
        for (std::int64_t n = 0; n < rows; ++n) {
          blas::loadRow<M>(in.data, in.type, first + n * in.batch, 1, end - begin, row);
          for (std::int64_t x = 0; x < end - begin; ++x) out[x * rows + n] = row[x];
        }
      }
    }
  }

  /// Packs kernel rows [k0, k0 + count) of channel c as panels [panel][h][w][16].
  void packWeights(std::int64_t g, std::int64_t c, std::int64_t kd, std::int64_t k0,
                   std::int64_t count, W* out) const {
    const auto& w = p_.weights;
    const auto size = static_cast<std::int64_t>(sizeOf(w.type));
    for (std::int64_t col = 0; col < p_.out_channels; col += kPanel)
      for (std::int64_t h = 0; h < count; ++h) {
        const std::int64_t offset =
            g * w.group + c * w.channel + kd * w.space[0] + (k0 + h) * w.space[1];
        const blas::ConstMatrix line{static_cast<const char*>(w.data) + offset * size, w.type,
                                     w.space[2], w.batch};
        blas::packPanel<M>(line, 0, p_.kernel[2], col, std::min(kPanel, p_.out_channels - col),
                           out);
        out += p_.kernel[2] * kPanel;
      }
  }

  void task(std::int64_t g, std::int64_t chunk, std::int64_t n0, W* sums) const {
    const std::int64_t per_chunk = ceilDiv(p_.in_channels, chunks_);
    const std::int64_t c_end = std::min(p_.in_channels, (chunk + 1) * per_chunk);
    const std::int64_t rows = std::min(rows_, p_.batch - n0);
    const std::int64_t panels = ceilDiv(p_.out_channels, kPanel);
    Workspace workspace;
    W* image = workspace.get<W>(height_ * width_ * rows_);
    W* weights = workspace.get<W>(panels * kPanel * kernel_rows_ * p_.kernel[2]);
    for (std::int64_t pos = 0; pos < p_.positions(); ++pos) {
      W* c = sums + (pos * p_.batch + n0) * p_.out_channels;
      std::fill(c, c + rows * p_.out_channels, W(0));
    }
    for (std::int64_t c = chunk * per_chunk; c < c_end; ++c)
      for (std::int64_t kd = 0; kd < p_.kernel[0]; ++kd)
        for (std::int64_t k0 = 0; k0 < p_.kernel[1]; k0 += kernel_rows_) {
          const std::int64_t count = std::min(kernel_rows_, p_.kernel[1] - k0);
          packWeights(g, c, kd, k0, count, weights);
          for (std::int64_t od = 0; od < p_.output[0]; ++od) {
            const std::int64_t id = od * p_.stride[0] + kd * p_.dilation[0] - p_.padding[0];
            if (id < 0 || id >= p_.input[0]) continue;
            const std::int64_t height =
                (p_.output[1] - 1) * p_.stride[1] + (count - 1) * p_.dilation[1] + 1;
            gather(g, c, id, k0 * p_.dilation[1] - p_.padding[1], height, n0, rows, image);
            multiply(image, weights, count, od, n0, rows, sums);
          }
        }
  }

  void multiply(const W* image, const W* weights, std::int64_t count, std::int64_t od,
                std::int64_t n0, std::int64_t rows, W* sums) const {
    const auto& table = blas::micro<M>();
    const std::int64_t co = p_.out_channels;
    const std::int64_t group = std::min<std::int64_t>(2, table.panels);
    // Neighbouring outputs of a line read neighbouring rows: they form one long run of rows.
    const bool joined = p_.stride[2] == 1 && rows == p_.batch;
    const std::int64_t run = joined ? rows * p_.output[2] : rows;
    const std::int64_t step = ceilDiv(run, ceilDiv(run, table.max_rows[group]));
    std::int64_t offsets[kMaxKernelRows];
    for (std::int64_t h = 0; h < count; ++h) offsets[h] = h * p_.dilation[1] * width_ * rows;
    blas::MicroCall<W> call;
    call.a_row = 1;
    call.a_k = p_.dilation[2] * rows;
    call.kc = p_.kernel[2];
    call.segments = offsets;
    call.num_segments = count;
    call.b_k = kPanel;
    call.b_panel = count * p_.kernel[2] * kPanel;
    call.c_row = co;
    call.accumulate = true;
    for (std::int64_t j = 0; j < co; j += group * kPanel) {
      call.b = weights + j / kPanel * call.b_panel;
      call.cols = std::min(group * kPanel, co - j);
      const std::int64_t panels = ceilDiv(call.cols, kPanel);
      for (std::int64_t oh = 0; oh < p_.output[1]; ++oh)
        for (std::int64_t ow = 0; ow < (joined ? 1 : p_.output[2]); ++ow) {
          const std::int64_t pos = (od * p_.output[1] + oh) * p_.output[2] + ow;
          const W* a = image + (oh * p_.stride[1] * width_ + ow * p_.stride[2]) * rows;
          for (std::int64_t n = 0; n < run; n += step) {
            call.a = a + n;
            call.c = sums + (pos * p_.batch + n0 + n) * co + j;
            table.fn[panels][std::min(step, run - n)](call);
          }
        }
    }
  }

  /// Adds the chunks of one output row in order and writes it.
  void finish(std::int64_t g, std::int64_t r, const W* all, std::int64_t sums) const {
    const auto& out = p_.out;
    const std::int64_t co = p_.out_channels;
    Workspace workspace;
    W* row = workspace.get<W>(co);
    std::copy_n(all + r * co, co, row);
    for (std::int64_t chunk = 1; chunk < chunks_; ++chunk) {
      const W* more = all + chunk * sums + r * co;
      if constexpr (std::is_same_v<M, blas::Floats>) {
        if (p_.half_partials) simd::roundToHalf(row, co);
      }
      for (std::int64_t j = 0; j < co; ++j) row[j] += more[j];
    }
    const std::int64_t pos = r / p_.batch;
    const std::int64_t offset = g * out.group + r % p_.batch * out.batch +
                                pos / (p_.output[1] * p_.output[2]) * out.space[0] +
                                pos / p_.output[2] % p_.output[1] * out.space[1] +
                                pos % p_.output[2] * out.space[2];
    blas::storeRow<M>(row, out.data, out.type, offset, out.channel, co);
  }

  const Subproblem& p_;
  std::int64_t width_ = 0, height_ = 0, rows_ = 0, kernel_rows_ = 1, chunks_ = 1;
};

}  // namespace

template <class M>
void runAlongBatch(ThreadPool& pool, const Subproblem& problem) {
  Batch<M>(problem).run(pool);
}

template void runAlongBatch<blas::Floats>(ThreadPool&, const Subproblem&);
template void runAlongBatch<blas::Doubles>(ThreadPool&, const Subproblem&);
template void runAlongBatch<blas::Ints>(ThreadPool&, const Subproblem&);
template void runAlongBatch<blas::LongInts>(ThreadPool&, const Subproblem&);

}  // namespace ipujax::engine::convolution
