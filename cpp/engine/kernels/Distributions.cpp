#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "engine/Errors.hpp"
#include "engine/Half.hpp"
#include "engine/Kernel.hpp"
#include "engine/kernels/CounterBits.hpp"
#include "engine/kernels/ReduceLoops.hpp"

/// Host kernels of poprand. Operands: seed, output and, for dropout, input; all row-major.
/// seed: [2] given by the user, or the hidden generator [4]: seed, modifier, number of calls.
namespace ipujax::engine {
namespace {

constexpr std::int64_t kCounters = 128;  // at a time: 512 elements
constexpr std::int64_t kParallelCounters = 8 * 1024;

double unit(std::uint32_t bits) { return (bits >> 8) * 0x1p-24; }  // [0, 1)

/// Where the numbers of one run come from.
struct Stream {
  std::uint32_t key[2];
  std::uint64_t high;

  void words(std::uint32_t* out, std::uint64_t counter, std::int64_t n, std::uint32_t retry) const {
    counterBits().philox(out, counter | std::uint64_t{retry} << 48, high, n, key[0], key[1]);
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

/// The distributions: value of one element from its word (and its block's four words).
struct Uniform {
  double low, range;
  double operator()(const std::uint32_t* block, int i) const {
    return low + range * unit(block[i]);
  }
};

struct UniformInteger {
  std::int64_t low;
  std::uint64_t count;  ///< 1 .. 2^32
  std::int64_t operator()(const std::uint32_t* block, int i) const {
    return low + static_cast<std::int64_t>(std::uint64_t{block[i]} * count >> 32);
  }
};

struct Bernoulli {
  std::uint64_t threshold;  ///< prob * 2^32
  double operator()(const std::uint32_t* block, int i) const { return block[i] < threshold; }
};

struct LogUniform {
  double low, range, low_value, high_value;
  double operator()(const std::uint32_t* block, int i) const {
    return std::clamp(std::exp(low + range * unit(block[i])), low_value, high_value);
  }
};

void store(ElementType type, std::byte* out, std::int64_t i, double value) {
  if (type == ElementType::kHalf) {
    const std::uint16_t half = floatToHalf(static_cast<float>(value));
    std::memcpy(out + 2 * i, &half, 2);
  } else if (type == ElementType::kFloat) {
    const auto single = static_cast<float>(value);
    std::memcpy(out + 4 * i, &single, 4);
  } else {
    const auto integer = static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
    std::memcpy(out + 4 * i, &integer, 4);
  }
}

double load(ElementType type, const std::byte* in, std::int64_t i) {
  if (type == ElementType::kHalf) {
    std::uint16_t half;
    std::memcpy(&half, in + 2 * i, 2);
    return halfToFloat(half);
  }
  float single;
  std::memcpy(&single, in + 4 * i, 4);
  return single;
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

/// One element of the output, from the four words of its counter.
struct Element {
  const Stream& stream;
  std::int64_t index;
  const std::uint32_t* block;
  int word() const { return static_cast<int>(index & 3); }
};

/// Operand 1 becomes value(element, pointers) everywhere; `prepare` sees the words of many elements
/// before.
template <class Value, class Prepare>
std::unique_ptr<Kernel> fillBy(const StepDesc& step, Value value, Prepare prepare) {
  return kernelOf(
      [common = Common(step), value, prepare](RunContext& context, std::span<std::byte* const> p) {
        const Stream stream = openStream(p[0], common.hidden, common.modifier);
        const std::int64_t counters = (common.elements + 3) / 4;
        context.pool.parallelFor(
            counters, kParallelCounters, [&](std::int64_t begin, std::int64_t end) {
              std::uint32_t words[4 * kCounters];
              for (std::int64_t at = begin; at < end; at += kCounters) {
                const std::int64_t n = std::min(kCounters, end - at);
                stream.words(words, static_cast<std::uint64_t>(at), n, 0);
                const auto prepared = prepare(words, n);
                const std::int64_t count = std::min(4 * n, common.elements - 4 * at);
                for (std::int64_t i = 0; i < count; ++i) {
                  const Element element{stream, 4 * at + i, words + (i & ~3)};
                  const auto made = value(element, p, prepared, i);
                  store(common.type, p[1], element.index, static_cast<double>(made));
                }
              }
            });
      });
}

template <class Value>
std::unique_ptr<Kernel> fillBy(const StepDesc& step, Value value) {
  return fillBy(
      step, [value](const Element& e, auto p, int, std::int64_t) { return value(e, p); },
      [](const std::uint32_t*, std::int64_t) { return 0; });
}

template <class Distribution>
std::unique_ptr<Kernel> fillWith(const StepDesc& step, Distribution value) {
  return fillBy(step, [value](const Element& e, auto) { return value(e.block, e.word()); });
}

/// value(element, a standard normal number of the element's) everywhere.
template <class Value>
std::unique_ptr<Kernel> fillFromNormals(const StepDesc& step, Value value) {
  return fillBy(
      step,
      [value](const Element& e, auto, const auto& normals, std::int64_t i) {
        return value(e, static_cast<double>(normals[static_cast<std::size_t>(i)]));
      },
      [](const std::uint32_t* words, std::int64_t counters) {
        std::array<float, 4 * kCounters> normals;
        counterBits().normals(words, normals.data(), 2 * counters);
        return normals;
      });
}

std::unique_ptr<Kernel> makeTruncated(const StepDesc& step, double mean, double deviation,
                                      double alpha) {
  constexpr std::uint32_t kTries = 64;
  return fillFromNormals(step, [=](const Element& e, double z) {
    std::uint32_t again[4];
    float normals[4];
    for (std::uint32_t r = 1; std::abs(z) > alpha && r < kTries; ++r) {
      e.stream.words(again, static_cast<std::uint64_t>(e.index / 4), 1, r);
      counterBits().normals(again, normals, 2);
      z = normals[e.word()];
    }
    return mean + deviation * std::clamp(z, -alpha, alpha);
  });
}

std::unique_ptr<Kernel> makeGenerate(const StepDesc& step) {
  const auto& kind = step.attributes.text("kind");
  const double a = step.attributes.real("a");
  const double b = step.attributes.real("b");
  const bool integer =
      sizeOf(step.operands[1].type) == 4 && step.operands[1].type != ElementType::kFloat;
  if (kind == "uniform" && integer) {
    return fillWith(
        step, UniformInteger{static_cast<std::int64_t>(a), static_cast<std::uint64_t>(b - a + 1)});
  }
  if (kind == "uniform") return fillWith(step, Uniform{a, b - a});
  if (kind == "log_uniform") {
    return fillWith(step, LogUniform{std::log(a), std::log(b) - std::log(a), a, b});
  }
  if (kind == "bernoulli") {
    return fillWith(step, Bernoulli{static_cast<std::uint64_t>(std::ldexp(a, 32))});
  }
  if (kind == "normal")
    return fillFromNormals(step, [=](const Element&, double z) { return a + b * z; });
  if (kind == "truncated_normal") return makeTruncated(step, a, b, step.attributes.real("alpha"));
  throw poplar_error("[poprand] needs a known distribution; got '" + kind +
                     "'. Compile the program again.");
}

/// Operands: seed, output, input. Kept elements are input * scale, rounded once.
std::unique_ptr<Kernel> makeDropout(const StepDesc& step) {
  const auto threshold = static_cast<std::uint64_t>(std::ldexp(step.attributes.real("keep"), 32));
  const double scale = step.attributes.real("scale");
  return fillBy(step, [=, type = step.operands[1].type](const Element& e, auto p) {
    return e.block[e.word()] < threshold ? load(type, p[2], e.index) * scale : 0.0;
  });
}

/// One choice for each element of a mask that broadcasts to the input: "mask_shape" has the input's
/// rank, with 1 where it broadcasts.
std::unique_ptr<Kernel> makeShapedDropout(const StepDesc& step) {
  const auto& shape = step.operands[1].shape;
  const auto& mask = step.attributes.integers("mask_shape");
  std::vector<reduction::LoopDim> dims(shape.size());
  std::int64_t count = 1;
  for (std::size_t d = shape.size(); d-- > 0; count *= mask[d])
    dims[d] = {shape[d], mask[d] == 1 ? 0 : count, 0};
  const auto threshold = static_cast<std::uint64_t>(std::ldexp(step.attributes.real("keep"), 32));
  const double scale = step.attributes.real("scale");
  return kernelOf([common = Common(step), dims, count, threshold, scale](
                      RunContext&, std::span<std::byte* const> p) {
    const Stream stream = openStream(p[0], common.hidden, common.modifier);
    std::vector<std::uint32_t> words(static_cast<std::size_t>((count + 3) / 4 * 4));
    stream.words(words.data(), 0, (count + 3) / 4, 0);
    if (common.elements == 0) return;  // an odometer counts from a first element
    reduction::Odometer at(dims, 0);
    for (std::int64_t i = 0; i < common.elements; ++i, at.next()) {
      const bool keep = words[static_cast<std::size_t>(at.in)] < threshold;
      store(common.type, p[1], i, keep ? load(common.type, p[2], i) * scale : 0.0);
    }
  });
}

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
const RegisterKernel kShaped{"poprand.shaped_dropout", makeShapedDropout, checkShapedDropout};
const RegisterKernel kSetSeed{"poprand.set_seed", makeSetSeed, checkSetSeed};

}  // namespace
}  // namespace ipujax::engine
