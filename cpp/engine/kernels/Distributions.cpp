#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "engine/Errors.hpp"
#include "engine/Kernel.hpp"
#include "engine/Workspace.hpp"
#include "engine/kernels/CounterBits.hpp"
#include "engine/kernels/RandomLoops.hpp"
#include "engine/kernels/ReduceLoops.hpp"
#include "engine/simd/VectorOps.hpp"

/// Host kernels of poprand. Operands: seed, output and, for dropout, input; all row-major.
/// seed: [2] given by the user, or the hidden generator [4]: seed, modifier, number of calls.
namespace ipujax::engine {
namespace {

constexpr std::int64_t kCounters = 128;  // at a time: 512 elements
constexpr std::int64_t kParallelCounters = 8 * 1024;

/// Where the numbers of one run come from.
struct Stream {
  std::uint32_t key[2];
  std::uint64_t high;

  void words(std::uint32_t* out, std::uint64_t counter, std::int64_t n) const {
    counterBits().philox(out, counter, high, n, key[0], key[1]);
  }
  /// Of other counters in turn, for draw number `retry`, which they take along.
  void wordsAt(std::uint32_t* out, std::uint64_t* counters, std::int64_t n,
               std::uint32_t retry) const {
    for (std::int64_t i = 0; i < n; ++i) counters[i] |= std::uint64_t{retry} << 48;
    counterBits().philox_at(out, counters, high, n, key[0], key[1]);
  }
};

Stream openStream(std::byte* seed, bool hidden, std::uint32_t modifier) {
  std::uint32_t words[4] = {0, 0, 0, 0};
  std::memcpy(words, seed, hidden ? 16 : 8);
  const std::uint64_t call = words[3];
  if (hidden) {
    modifier = words[2];
    ++words[3];
    std::memcpy(seed, words, sizeof(words));
  }
  return {{words[0], words[1]}, std::uint64_t{modifier} << 32 | call};
}

struct Common {
  explicit Common(const StepDesc& step)
      : type(step.operands[1].type),
        elements(step.operands[1].numElements()),
        modifier(static_cast<std::uint32_t>(step.attributes.integer("modifier"))),
        hidden(step.operands[0].numElements() == 4) {}
  ElementType type;
  std::int64_t elements;
  std::uint32_t modifier;
  bool hidden;
};

/// fill(words, first element, count, pointers) for all elements, up to 4 * kCounters at a time.
template <class Fill>
std::unique_ptr<Kernel> filledBy(const StepDesc& step, Fill fill) {
  return kernelOf(
      [common = Common(step), fill](RunContext& context, std::span<std::byte* const> p) {
        const Stream stream = openStream(p[0], common.hidden, common.modifier);
        const std::int64_t counters = (common.elements + 3) / 4;
        context.pool.parallelFor(
            counters, kParallelCounters, [&](std::int64_t begin, std::int64_t end) {
              std::uint32_t words[4 * kCounters];
              for (std::int64_t at = begin; at < end; at += kCounters) {
                const std::int64_t n = std::min(kCounters, end - at);
                stream.words(words, static_cast<std::uint64_t>(at), n);
                fill(stream, words, 4 * at, std::min(4 * n, common.elements - 4 * at), p);
              }
            });
      });
}

void store(ElementType type, std::byte* out, std::int64_t first, const float* values,
           std::int64_t n) {
  if (type == ElementType::kHalf) {
    simd::floatToHalf(values, reinterpret_cast<std::uint16_t*>(out) + first, n);
  } else if (type == ElementType::kFloat) {
    std::copy(values, values + n, reinterpret_cast<float*>(out) + first);
  } else {
    auto* integers = reinterpret_cast<std::int32_t*>(out) + first;
    for (std::int64_t i = 0; i < n; ++i) integers[i] = static_cast<std::int32_t>(values[i]);
  }
}

/// make(stream, words, first element, count, values), which are stored as the output's type.
template <class Make>
std::unique_ptr<Kernel> filledWith(const StepDesc& step, Make make) {
  return filledBy(step, [make, type = step.operands[1].type](
                            const Stream& stream, const std::uint32_t* words, std::int64_t first,
                            std::int64_t n, std::span<std::byte* const> p) {
    std::array<float, 4 * kCounters> values;
    make(stream, words, first, n, values.data());
    store(type, p[1], first, values.data(), n);
  });
}

/// low + (word * count) / 2^32, for 1 to 2^32 values.
std::unique_ptr<Kernel> makeIntegers(const StepDesc& step, double low, double high) {
  const auto least = static_cast<std::int64_t>(low);
  const auto count = static_cast<std::uint64_t>(high - low + 1);
  return filledBy(step, [=](const Stream&, const std::uint32_t* words, std::int64_t first,
                            std::int64_t n, std::span<std::byte* const> p) {
    auto* out = reinterpret_cast<std::uint32_t*>(p[1]) + first;
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = static_cast<std::uint32_t>(
          least + static_cast<std::int64_t>(std::uint64_t{words[i]} * count >> 32));
  });
}

std::unique_ptr<Kernel> makeUniform(const StepDesc& step, double low, double high) {
  return filledWith(
      step, [=](const Stream&, const std::uint32_t* words, std::int64_t, std::int64_t n,
                float* values) { randomLoops().uniform(words, values, n, low, high - low); });
}

std::unique_ptr<Kernel> makeLogUniform(const StepDesc& step, double low, double high) {
  const double log_low = std::log(low);
  const double range = std::log(high) - log_low;
  return filledWith(step, [=](const Stream&, const std::uint32_t* words, std::int64_t,
                              std::int64_t n, float* values) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double unit = (words[i] >> 8) * 0x1p-24;
      values[i] = static_cast<float>(std::clamp(std::exp(log_low + range * unit), low, high));
    }
  });
}

std::unique_ptr<Kernel> makeBernoulli(const StepDesc& step, double probability) {
  const Kept kept(static_cast<std::uint64_t>(std::ldexp(probability, 32)));
  return filledWith(step,
                    [=](const Stream&, const std::uint32_t* words, std::int64_t, std::int64_t n,
                        float* values) { randomLoops().kept(words, values, n, kept); });
}

void standardNormals(const std::uint32_t* words, std::int64_t n, float* values) {
  counterBits().normals(words, values, (n + 1) / 2);
}

std::unique_ptr<Kernel> makeNormal(const StepDesc& step, double mean, double deviation) {
  return filledWith(step, [=](const Stream&, const std::uint32_t* words, std::int64_t,
                              std::int64_t n, float* values) {
    standardNormals(words, n, values);
    randomLoops().scaled(values, n, mean, deviation);
  });
}

/// Draws again, from other counters, what is beyond alpha; several times, then it is cut there.
void redraw(const Stream& stream, std::int64_t first, std::int64_t n, double alpha, float* values) {
  constexpr std::uint32_t kTries = 64;
  std::array<std::int64_t, 4 * kCounters> places;
  std::size_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    places[count] = i;
    count += std::abs(static_cast<double>(values[i])) > alpha ? 1 : 0;
  }
  std::array<std::uint64_t, kCounters> counters;
  std::array<std::uint32_t, 4 * kCounters> words;
  std::array<float, 4 * kCounters> normals;
  for (std::uint32_t r = 1; count > 0 && r < kTries; ++r) {
    std::size_t left = 0;
    for (std::size_t begin = 0; begin < count; begin += kCounters) {
      const std::size_t some = std::min<std::size_t>(kCounters, count - begin);
      for (std::size_t j = 0; j < some; ++j)
        counters[j] = static_cast<std::uint64_t>((first + places[begin + j]) / 4);
      stream.wordsAt(words.data(), counters.data(), static_cast<std::int64_t>(some), r);
      standardNormals(words.data(), static_cast<std::int64_t>(4 * some), normals.data());
      for (std::size_t j = 0; j < some; ++j) {
        const std::int64_t place = places[begin + j];
        const float z = normals[4 * j + static_cast<std::size_t>((first + place) & 3)];
        values[place] = z;
        if (std::abs(static_cast<double>(z)) > alpha) places[left++] = place;
      }
    }
    count = left;
  }
}

std::unique_ptr<Kernel> makeTruncated(const StepDesc& step, double mean, double deviation,
                                      double alpha) {
  return filledWith(step, [=](const Stream& stream, const std::uint32_t* words, std::int64_t first,
                              std::int64_t n, float* values) {
    standardNormals(words, n, values);
    redraw(stream, first, n, alpha, values);
    const auto most = static_cast<float>(alpha);
    for (std::int64_t i = 0; i < n; ++i) values[i] = std::clamp(values[i], -most, most);
    randomLoops().scaled(values, n, mean, deviation);
  });
}

std::unique_ptr<Kernel> makeGenerate(const StepDesc& step) {
  const auto& kind = step.attributes.text("kind");
  const double a = step.attributes.real("a");
  const double b = step.attributes.real("b");
  const bool integer =
      sizeOf(step.operands[1].type) == 4 && step.operands[1].type != ElementType::kFloat;
  if (kind == "uniform" && integer) return makeIntegers(step, a, b);
  if (kind == "uniform") return makeUniform(step, a, b);
  if (kind == "log_uniform") return makeLogUniform(step, a, b);
  if (kind == "bernoulli") return makeBernoulli(step, a);
  if (kind == "normal") return makeNormal(step, a, b);
  if (kind == "truncated_normal") return makeTruncated(step, a, b, step.attributes.real("alpha"));
  throw poplar_error("[poprand] needs a known distribution; got '" + kind +
                     "'. Compile the program again.");
}

/// Kept elements are input * scale.
struct Dropped {
  explicit Dropped(const StepDesc& step)
      : type(step.operands[1].type),
        kept(static_cast<std::uint64_t>(std::ldexp(step.attributes.real("keep"), 32))),
        scale(step.attributes.real("scale")) {}

  /// n elements from `first` on; element i has the word i * step.
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

/// One choice for each element of a mask that broadcasts to the input: "mask_shape" has the input's
/// rank, with 1 where it broadcasts.
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
  /// Along the loop that follows the output's memory; there is one, as the output is contiguous.
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

/// Operands: the user's seed, the hidden generator (write).
std::unique_ptr<Kernel> makeSetSeed(const StepDesc& step) {
  const auto modifier = static_cast<std::uint32_t>(step.attributes.integer("modifier"));
  return kernelOf([modifier](RunContext&, std::span<std::byte* const> p) {
    std::uint32_t words[4] = {0, 0, modifier, 0};
    std::memcpy(words, p[0], 8);
    std::memcpy(p[1], words, sizeof(words));
  });
}

/// The seed that a user gave, or the hidden generator, which counts its calls.
void checkSeed(const StepCheck& check) {
  check.integer("modifier", std::numeric_limits<std::int32_t>::min(),
                std::numeric_limits<std::uint32_t>::max());
  const auto seed = check.anyAccess(0).isOfBytes(4).isContiguous();
  if (seed->numElements() == 4) {
    check.updated(0);
  } else {
    check.read(0).hasElements(2);
  }
}

void checkGenerate(StepCheck& check) {
  check.operands(2);
  checkSeed(check);
  const auto out = check.written(1).isContiguous();
  check.need(out->type == ElementType::kHalf || sizeOf(out->type) == 4,
             "half, float or 32-bit results");
  const std::string& kind =
      check.text("kind", {"uniform", "log_uniform", "bernoulli", "normal", "truncated_normal"});
  check.real("a");
  check.real("b");
  if (kind == "truncated_normal") check.real("alpha");
}

OperandCheck checkDropped(StepCheck& check) {
  check.operands(3);
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

void checkSetSeed(StepCheck& check) {
  check.operands(2);
  check.integer("modifier", std::numeric_limits<std::int32_t>::min(),
                std::numeric_limits<std::uint32_t>::max());
  check.read(0).isOfBytes(4).isContiguous().hasElements(2);
  check.written(1).isOfBytes(4).isContiguous().hasElements(4);
}

const RegisterKernel kGenerate{"poprand.generate", makeGenerate, checkGenerate};
const RegisterKernel kDropout{"poprand.dropout", makeDropout, checkDropout};
const RegisterKernel kShaped{"poprand.shaped_dropout", makeKernel<ShapedDropout>,
                             checkShapedDropout};
const RegisterKernel kSetSeed{"poprand.set_seed", makeSetSeed, checkSetSeed};

}  // namespace
}  // namespace ipujax::engine
