#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>

#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/random/CounterBits.hpp"
#include "engine/kernels/random/WorkerSeeds.hpp"

/// The kernels of poprand take their random words from Philox, by counter. Their first two
/// operands are the seed and the output.
/// seed: [2] given by the user, or the hidden generator [4]: seed, modifier, number of calls,
/// scrambled (WorkerSeeds.hpp).
namespace ipujax::engine::draws {

constexpr std::int64_t kCounters = 128;  // at a time: 512 elements
constexpr std::int64_t kParallelCounters = 8 * 1024;

/// The source of one run's random numbers.
struct Stream {
  std::uint32_t key[2];
  std::uint64_t high;

  void words(std::uint32_t* out, std::uint64_t counter, std::int64_t n) const {
    counterBits().philox(out, counter, high, n, key[0], key[1]);
  }
  /// Words of the given counters for draw number `retry`, which is set in their upper bits.
  void wordsAt(std::uint32_t* out, std::uint64_t* counters, std::int64_t n,
               std::uint32_t retry) const {
    for (std::int64_t i = 0; i < n; ++i) counters[i] |= std::uint64_t{retry} << 48;
    counterBits().philox_at(out, counters, high, n, key[0], key[1]);
  }
};

inline Stream openStream(std::byte* seed, bool hidden, std::uint32_t modifier) {
  std::uint32_t words[seeds::kWords] = {0, 0, 0, 0};
  std::memcpy(words, seed, hidden ? sizeof(words) : 8);
  if (hidden) seeds::unscramble(words);
  const std::uint64_t call = words[3];
  if (hidden) {
    modifier = words[2];
    ++words[3];
    seeds::scramble(words);
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

/// Calls fill(stream, words, first element, count, pointers) for all elements, up to 4 * kCounters
/// at a time.
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

/// Checks the seed: the user's, or the hidden generator, which counts its calls.
inline void checkSeed(const StepCheck& check) {
  check.integer("modifier", std::numeric_limits<std::int32_t>::min(),
                std::numeric_limits<std::uint32_t>::max());
  const auto seed = check.anyAccess(0).isOfBytes(4).isContiguous();
  if (seed->numElements() == 4) {
    check.updated(0);
  } else {
    check.read(0).hasElements(2);
  }
}

}  // namespace ipujax::engine::draws
