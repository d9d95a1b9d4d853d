#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/Workspace.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/random/RandomLoops.hpp"
#include "engine/kernels/random/RandomStream.hpp"
#include "engine/kernels/reduce/ReduceLoops.hpp"

/// Host kernels of dropout. Operands: seed, output, input; all row-major.
namespace ipujax::engine {
namespace {

using draws::checkSeed;
using draws::Common;
using draws::filledBy;
using draws::kCounters;
using draws::kParallelCounters;
using draws::openStream;
using draws::Stream;

/// Kept elements are input * scale.
struct Dropped {
  explicit Dropped(const StepDesc& step)
      : type(step.operands[1].type),
        kept(static_cast<std::uint64_t>(std::ldexp(step.attributes.real("keep"), 32))),
        scale(step.attributes.real("scale")) {}

  /// Drops n elements from `first` on; element i uses word i * step.
  void operator()(const std::uint32_t* words, std::int64_t step, std::span<std::byte* const> p,
                  std::int64_t first, std::int64_t n) const {
    const auto run = [&]<class T>(auto loop, T) {
      loop(words, step, reinterpret_cast<const T*>(p[2]) + first,
           reinterpret_cast<T*>(p[1]) + first, n, kept, scale);
    };
    if (type == ElementType::kHalf)
      run(randomLoops().drop_halves, std::uint16_t{});
    else
      run(randomLoops().drop_floats, float{});
  }

  ElementType type;
  Kept kept;
  double scale;
};

/// Operands: seed, output, input.
std::unique_ptr<Kernel> makeDropout(const StepDesc& step) {
  return filledBy(
      step, [drop = Dropped(step)](const Stream&, const std::uint32_t* words, std::int64_t first,
                                   std::int64_t n,
                                   std::span<std::byte* const> p) { drop(words, 1, p, first, n); });
}

/// Makes one choice for each element of a mask that broadcasts to the input: "mask_shape" has the
/// input's rank, with 1 where it broadcasts.
class ShapedDropout final : public Kernel {
 public:
  explicit ShapedDropout(const StepDesc& step) : common_(step), drop_(step) {
    const auto& shape = step.operands[1].shape;
    const auto& mask = step.attributes.integers("mask_shape");
    std::int64_t out = 1;
    for (std::size_t d = shape.size(); d-- > 0; count_ *= mask[d], out *= shape[d])
      if (shape[d] != 1) dims_.insert(dims_.begin(), {shape[d], mask[d] == 1 ? 0 : count_, out});
    std::int64_t in_offset = 0, out_offset = 0;
    reduction::simplifyLoops(dims_, in_offset, out_offset);
  }

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const Stream stream = openStream(p[0], common_.hidden, common_.modifier);
    if (common_.elements == 0) return;
    Workspace workspace;
    const std::int64_t counters = (count_ + 3) / 4;
    auto* words = reinterpret_cast<std::uint32_t*>(workspace.get(16 * counters));
    context.pool.parallelFor(
        counters, kParallelCounters, [&](std::int64_t begin, std::int64_t end) {
          stream.words(words + 4 * begin, static_cast<std::uint64_t>(begin), end - begin);
        });
    rows(context, words, p);
  }

 private:
  /// Drops along the loop with output stride 1; there is one, as the output is contiguous.
  void rows(RunContext& context, const std::uint32_t* words, std::span<std::byte* const> p) const {
    std::vector<reduction::LoopDim> outer;
    reduction::LoopDim row{1, 0, 1};
    for (const auto& dim : dims_) {
      if (dim.out == 1)
        row = dim;
      else
        outer.push_back(dim);
    }
    const std::int64_t count = common_.elements / row.n;
    const std::int64_t grain = std::max<std::int64_t>(1, 4 * kParallelCounters / row.n);
    context.pool.parallelFor(count, grain, [&](std::int64_t begin, std::int64_t end) {
      reduction::Odometer at(outer, begin);
      for (std::int64_t r = begin; r < end; ++r, at.next())
        drop_(words + at.in, row.in, p, at.out, row.n);
    });
  }

  Common common_;
  Dropped drop_;
  std::vector<reduction::LoopDim> dims_;
  std::int64_t count_ = 1;  ///< elements of the mask
};

/// Dropout of a block of a larger array: each element uses the same word as in the whole array.
/// "mask_shape" is the shape of the whole mask, with 1 where it broadcasts; the fourth operand says
/// where the block begins.
class DropoutBlock final : public Kernel {
 public:
  explicit DropoutBlock(const StepDesc& step) : common_(step), drop_(step) {
    const auto& shape = step.operands[1].shape;
    const auto& mask = step.attributes.integers("mask_shape");
    strides_.resize(shape.size());
    std::int64_t stride = 1, out = 1;
    for (std::size_t d = shape.size(); d-- > 0; stride *= mask[d], out *= shape[d]) {
      strides_[d] = mask[d] == 1 ? 0 : stride;
      if (shape[d] != 1) dims_.insert(dims_.begin(), {shape[d], strides_[d], out});
    }
    std::int64_t in_offset = 0, out_offset = 0;
    reduction::simplifyLoops(dims_, in_offset, out_offset);
    const auto row = std::find_if(dims_.begin(), dims_.end(),
                                  [](const reduction::LoopDim& dim) { return dim.out == 1; });
    if (row == dims_.end()) return;
    row_ = *row;
    dims_.erase(row);
  }

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const Stream stream = openStream(p[0], common_.hidden, common_.modifier);
    if (common_.elements == 0) return;
    std::uint64_t begin = 0;
    for (std::size_t d = 0; d < strides_.size(); ++d) {
      std::uint32_t start;
      std::memcpy(&start, p[3] + 4 * d, sizeof(start));
      begin += std::uint64_t{start} * static_cast<std::uint64_t>(strides_[d]);
    }
    const std::int64_t parts = (row_.n + kPart - 1) / kPart;
    const std::int64_t grain = std::max<std::int64_t>(1, 4 * kParallelCounters / row_.n);
    context.pool.parallelFor(
        common_.elements / row_.n * parts, grain, [&](std::int64_t from, std::int64_t to) {
          reduction::Odometer at(dims_, from / parts);
          for (std::int64_t k = from; k < to; ++k) {
            const std::int64_t first = k % parts * kPart;
            part(stream, begin + static_cast<std::uint64_t>(at.in + first * row_.in),
                 at.out + first, std::min(kPart, row_.n - first), p);
            if ((k + 1) % parts == 0) at.next();
          }
        });
  }

 private:
  static constexpr std::int64_t kPart = kCounters;  ///< elements at a time

  /// Drops n elements, whose words start at word number `place` and are row_.in apart.
  void part(const Stream& stream, std::uint64_t place, std::int64_t first, std::int64_t n,
            std::span<std::byte* const> p) const {
    std::uint32_t words[4 * kCounters];
    if (row_.in <= 1) {
      const std::int64_t counted = row_.in == 0 ? 1 : (n + 3) / 4 + 1;
      stream.words(words, place / 4, counted);
      drop_(words + place % 4, row_.in, p, first, n);
      return;
    }
    std::uint64_t counters[kCounters] = {};
    std::uint32_t chosen[kCounters];
    const auto step = static_cast<std::uint64_t>(row_.in);
    for (std::int64_t i = 0; i < n; ++i)
      counters[i] = (place + static_cast<std::uint64_t>(i) * step) / 4;
    stream.wordsAt(words, counters, n, 0);
    for (std::int64_t i = 0; i < n; ++i)
      chosen[i] = words[4 * i + static_cast<std::int64_t>(
                                    (place + static_cast<std::uint64_t>(i) * step) % 4)];
    drop_(chosen, 1, p, first, n);
  }

  Common common_;
  Dropped drop_;
  std::vector<std::int64_t> strides_;     ///< of the whole mask, by dimension
  std::vector<reduction::LoopDim> dims_;  ///< around the row
  reduction::LoopDim row_{1, 0, 1};       ///< along the output's memory
};

OperandCheck checkDropped(StepCheck& check, std::size_t operands = 3) {
  check.operands(operands);
  checkSeed(check);
  const auto out = check.written(1).isFloating().isContiguous();
  check.read(2).hasTypeOf(out).hasShapeOf(out).isContiguous();
  check.mayReplace(2, 1);
  const double keep = check.real("keep");
  check.need(keep >= 0 && keep <= 1, "a probability to keep");
  check.real("scale");
  return out;
}

void checkDropout(StepCheck& check) { checkDropped(check); }

void checkShapedDropout(StepCheck& check) {
  const auto out = checkDropped(check);
  const auto& mask = check.integers("mask_shape", out->shape.size());
  for (std::size_t d = 0; d < mask.size(); ++d)
    check.need(mask[d] == 1 || mask[d] == out->shape[d], "a mask that broadcasts");
}

void checkDropoutBlock(StepCheck& check) {
  const auto out = checkDropped(check, 4);
  check.read(3).isOfBytes(4).isContiguous().hasElements(
      static_cast<std::int64_t>(out->shape.size()));
  const auto& mask = check.integers("mask_shape", out->shape.size());
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < mask.size(); ++d) {
    check.need(mask[d] == 1 || mask[d] >= out->shape[d], "a mask that is larger or broadcasts");
    check.need(
        mask[d] >= 0 && mask[d] <= (std::int64_t{1} << 48) / std::max<std::int64_t>(1, elements),
        "a mask of at most 2^48 elements");
    elements *= mask[d];
  }
}

const RegisterKernel kDropout{"poprand.dropout", makeDropout, checkDropout};
const RegisterKernel kShaped{"poprand.shaped_dropout", makeKernel<ShapedDropout>,
                             checkShapedDropout};
const RegisterKernel kBlock{"popx.dropout_block", makeKernel<DropoutBlock>, checkDropoutBlock};

}  // namespace
}  // namespace ipujax::engine
