#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "engine/Errors.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/random/CounterBits.hpp"
#include "engine/kernels/random/RandomLoops.hpp"
#include "engine/kernels/random/RandomStream.hpp"
#include "engine/simd/VectorOps.hpp"

/// Host kernels of poprand's distributions. Operands: seed, output; both row-major.
namespace ipujax::engine {
namespace {

using draws::checkSeed;
using draws::filledBy;
using draws::kCounters;
using draws::Stream;

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

/// Calls make(stream, words, first element, count, values); stores values as the output's type.
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

/// Redraws values beyond alpha from other counters, several times; the caller clamps the rest.
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

/// Operands: the user's seed, the state of all workers' generators (write).
std::unique_ptr<Kernel> makeSetSeed(const StepDesc& step) {
  const auto modifier = static_cast<std::uint32_t>(step.attributes.integer("modifier"));
  const auto workers = static_cast<std::size_t>(step.operands[1].numElements()) / seeds::kWords;
  return kernelOf([=](RunContext&, std::span<std::byte* const> p) {
    std::uint32_t seed[2];
    std::memcpy(seed, p[0], sizeof(seed));
    const auto words = seeds::ofWorkers(workers, seed[0], seed[1], modifier);
    std::memcpy(p[1], words.data(), words.size() * sizeof(words[0]));
  });
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

void checkSetSeed(StepCheck& check) {
  check.operands(2);
  check.integer("modifier", std::numeric_limits<std::int32_t>::min(),
                std::numeric_limits<std::uint32_t>::max());
  check.read(0).isOfBytes(4).isContiguous().hasElements(2);
  const auto state = check.written(1).isOfBytes(4).isContiguous();
  check.need(state->numElements() % static_cast<std::int64_t>(seeds::kWords) == 0,
             "four words for each worker");
}

const RegisterKernel kGenerate{"poprand.generate", makeGenerate, checkGenerate};
const RegisterKernel kSetSeed{"poprand.set_seed", makeSetSeed, checkSetSeed};

}  // namespace
}  // namespace ipujax::engine
