#include "engine/kernels/conv/ConvGroups.hpp"

#include <algorithm>
#include <type_traits>

#include "engine/ThreadPool.hpp"
#include "engine/Workspace.hpp"
#include "engine/blas/Pack.hpp"
#include "engine/kernels/conv/ConvSubproblem.hpp"
#include "engine/simd/VectorOps.hpp"

/// For many groups of few channels (depthwise): vectors run along the groups.
namespace ipujax::engine::convolution {
namespace {

constexpr std::int64_t kTaskWork = 1 << 16;

struct Range {
  std::int64_t begin, end;
};

/// The i of [0, size) for which i * step + shift lies in [0, input).
Range inside(std::int64_t size, std::int64_t step, std::int64_t shift, std::int64_t input) {
  const std::int64_t begin = shift >= 0 ? 0 : (-shift + step - 1) / step;
  const std::int64_t last = input - 1 - shift;
  const std::int64_t end = last < 0 ? 0 : last / step + 1;
  return {std::min(begin, size), std::clamp<std::int64_t>(end, 0, size)};
}

template <class M>
class Groups {
  using W = blas::Word<M>;

 public:
  Groups(const Subproblem& p)
      : p_(p),
        line_(IPUJAX_PICK(groupLine<W>)),
        sum_(IPUJAX_PICK(groupSum<W>)),
        direct_in_(blas::isWord<M>(p.in.type) && p.in.group == 1) {}

  void run(ThreadPool& pool) const {
    const std::int64_t pairs = p_.in_channels * p_.out_channels;
    Workspace workspace;
    W* weights = workspace.get<W>(p_.taps() * pairs * p_.groups);
    const std::int64_t rows = p_.taps() * pairs;
    pool.parallelFor(rows, (1 << 14) / p_.groups + 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) packRow(r, weights + r * p_.groups);
    });
    const std::int64_t lines = p_.batch * p_.out_channels * p_.output[0] * p_.output[1];
    const std::int64_t work = p_.taps() * p_.in_channels * p_.groups * p_.output[2];
    pool.parallelFor(lines, kTaskWork / std::max<std::int64_t>(work, 1) + 1,
                     [&](std::int64_t begin, std::int64_t end) {
                       for (std::int64_t i = begin; i < end; ++i) outputLine(i, weights);
                     });
  }

 private:
  /// Weights as [co][ci][kd][kh][kw][group].
  void packRow(std::int64_t r, W* out) const {
    const auto& w = p_.weights;
    const auto& k = p_.kernel;
    const std::int64_t x = r % k[2], h = r / k[2] % k[1], d = r / (k[2] * k[1]) % k[0];
    const std::int64_t channels = r / p_.taps();
    const std::int64_t offset = channels / p_.in_channels * w.batch +
                                channels % p_.in_channels * w.channel + d * w.space[0] +
                                h * w.space[1] + x * w.space[2];
    blas::loadRow<M>(w.data, w.type, offset, w.group, p_.groups, out);
  }

  void outputLine(std::int64_t index, const W* weights) const {
    const auto& o = p_.output;
    const std::int64_t oh = index % o[1], od = index / o[1] % o[0];
    const std::int64_t co = index / (o[1] * o[0]) % p_.out_channels;
    const std::int64_t n = index / (o[1] * o[0] * p_.out_channels);
    const std::int64_t groups = p_.groups;
    Workspace workspace;
    W* sums = workspace.get<W>(o[2] * groups);
    std::fill(sums, sums + o[2] * groups, W(0));
    const std::int64_t taps = p_.taps();
    for (std::int64_t ci = 0; ci < p_.in_channels; ++ci)
      for (std::int64_t kd = 0; kd < p_.kernel[0]; ++kd)
        for (std::int64_t kh = 0; kh < p_.kernel[1]; ++kh) {
          const std::int64_t id = od * p_.stride[0] + kd * p_.dilation[0] - p_.padding[0];
          const std::int64_t ih = oh * p_.stride[1] + kh * p_.dilation[1] - p_.padding[1];
          if (id < 0 || id >= p_.input[0] || ih < 0 || ih >= p_.input[1]) continue;
          const std::int64_t base =
              n * p_.in.batch + ci * p_.in.channel + id * p_.in.space[0] + ih * p_.in.space[1];
          const W* w = weights + ((co * p_.in_channels + ci) * taps +
                                  (kd * p_.kernel[1] + kh) * p_.kernel[2]) *
                                     groups;
          kernelRow(base, w, sums);
          if constexpr (std::is_same_v<M, blas::Floats>) {
            if (p_.half_partials) simd::roundToHalf(sums, o[2] * groups);
          }
        }
    const std::int64_t first =
        n * p_.out.batch + co * p_.out.channel + od * p_.out.space[0] + oh * p_.out.space[1];
    for (std::int64_t x = 0; x < o[2]; ++x)
      blas::storeRow<M>(sums + x * groups, p_.out.data, p_.out.type, first + x * p_.out.space[2],
                        p_.out.group, groups);
  }

  void kernelRow(std::int64_t base, const W* weights, W* sums) const {
    const auto& in = p_.in;
    Workspace workspace;
    const W* line = nullptr;
    std::int64_t pixel = in.space[2];
    if (direct_in_) {
      line = static_cast<const W*>(in.data) + base;
    } else {
      W* copy = workspace.get<W>(p_.input[2] * p_.groups);
      for (std::int64_t x = 0; x < p_.input[2]; ++x)
        blas::loadRow<M>(in.data, in.type, base + x * in.space[2], in.group, p_.groups,
                         copy + x * p_.groups);
      line = copy;
      pixel = p_.groups;
    }
    if (p_.kernel[2] > 2 * p_.output[2]) return sumLine(line, pixel, weights, sums);
    for (std::int64_t kw = 0; kw < p_.kernel[2]; ++kw) {
      const std::int64_t shift = kw * p_.dilation[2] - p_.padding[2];
      const Range range = inside(p_.output[2], p_.stride[2], shift, p_.input[2]);
      if (range.begin >= range.end) continue;
      line_(sums + range.begin * p_.groups, line + (range.begin * p_.stride[2] + shift) * pixel,
            p_.stride[2] * pixel, weights + kw * p_.groups, p_.groups, range.end - range.begin);
    }
  }

  /// For a kernel longer than the line of outputs, as in gradients of weights.
  void sumLine(const W* line, std::int64_t pixel, const W* weights, W* sums) const {
    for (std::int64_t x = 0; x < p_.output[2]; ++x) {
      const std::int64_t shift = x * p_.stride[2] - p_.padding[2];
      const Range range = inside(p_.kernel[2], p_.dilation[2], shift, p_.input[2]);
      if (range.begin >= range.end) continue;
      sum_(sums + x * p_.groups, line + (range.begin * p_.dilation[2] + shift) * pixel,
           p_.dilation[2] * pixel, weights + range.begin * p_.groups, p_.groups,
           range.end - range.begin);
    }
  }

  const Subproblem& p_;
  GroupFn<W> line_;
  GroupFn<W> sum_;
  bool direct_in_;
};

}  // namespace

template <class M>
void runAlongGroups(ThreadPool& pool, const Subproblem& problem) {
  Groups<M>(problem).run(pool);
}

template void runAlongGroups<blas::Floats>(ThreadPool&, const Subproblem&);
template void runAlongGroups<blas::Doubles>(ThreadPool&, const Subproblem&);
template void runAlongGroups<blas::Ints>(ThreadPool&, const Subproblem&);
template void runAlongGroups<blas::LongInts>(ThreadPool&, const Subproblem&);

}  // namespace ipujax::engine::convolution
