#include <algorithm>
#include <cstring>
#include <span>

#include "engine/Errors.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/random/CounterBits.hpp"

namespace ipujax::engine {

namespace {

constexpr std::int64_t kBlock = 256;  // counters at a time
constexpr std::int64_t kParallelCounters = 16 * 1024;

/// How XLA pairs the two words of a threefry counter with elements: along one dimension of the
/// result, element 2 h gets word 0 and 2 h + 1 word 1 of counter (outer, h, inner).
struct Halves {
  std::int64_t outer = 1, extent = 1, inner = 1;
  std::int64_t half() const { return (extent + 1) / 2; }
  std::int64_t counters() const { return outer * half() * inner; }
};

Halves splitInHalves(std::span<const std::int64_t> shape) {
  Halves halves;
  if (shape.empty()) return halves;
  std::size_t split = 0;
  bool even = false;
  for (std::size_t i = 0; i < shape.size() && !even; ++i) {
    even = shape[i] % 2 == 0;
    if (even || shape[i] > shape[split]) split = i;
  }
  for (std::size_t i = 0; i < split; ++i) halves.outer *= shape[i];
  for (std::size_t i = split + 1; i < shape.size(); ++i) halves.inner *= shape[i];
  halves.extent = shape[split];
  return halves;
}

struct State {
  std::uint64_t key, low, high;
};

State readState(const std::byte* p, std::uint64_t bytes) {
  std::uint64_t words[3] = {0, 0, 0};
  std::memcpy(words, p, bytes);
  // In a state of two words, the key is also the counter's high part.
  return bytes == 24 ? State{words[0], words[1], words[2]} : State{words[0], words[1], words[0]};
}

std::uint32_t lowWord(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t highWord(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

/// T holds the element's bits; types narrower than 32 bits take truncated 32-bit words.
template <class T>
class Threefry final : public Kernel {
 public:
  explicit Threefry(const StepDesc& step) : halves_(splitInHalves(step.operands[2].shape)) {}

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const State state = readState(p[0], 16);
    auto* out = reinterpret_cast<T*>(p[2]);
    const std::int64_t n =
        sizeof(T) == 8 ? halves_.outer * halves_.extent * halves_.inner : halves_.counters();
    context.pool.parallelFor(n, kParallelCounters, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end; at += kBlock) {
        block(state, out, at, std::min(kBlock, end - at));
      }
    });
    const std::uint64_t next[2] = {state.key, state.low + static_cast<std::uint64_t>(n)};
    std::memcpy(p[1], next, sizeof(next));
  }

 private:
  void block(const State& state, T* out, std::int64_t at, std::int64_t n) const {
    std::uint32_t first[kBlock];
    std::uint32_t second[kBlock];
    counterBits().threefry(first, second, state.low + static_cast<std::uint64_t>(at), n,
                           lowWord(state.key), highWord(state.key));
    if constexpr (sizeof(T) == 8) {
      for (std::int64_t i = 0; i < n; ++i)
        out[at + i] = first[i] | static_cast<std::uint64_t>(second[i]) << 32;
      return;
    }
    const std::int64_t inner = halves_.inner;
    std::int64_t in = at % inner;
    std::int64_t h = at / inner % halves_.half();
    std::int64_t o = at / inner / halves_.half();
    for (std::int64_t i = 0; i < n; ++i) {
      T* to = out + (o * halves_.extent + 2 * h) * inner + in;
      to[0] = static_cast<T>(first[i]);
      if (2 * h + 1 < halves_.extent) to[inner] = static_cast<T>(second[i]);
      if (++in < inner) continue;
      in = 0;
      if (++h < halves_.half()) continue;
      h = 0;
      ++o;
    }
  }

  Halves halves_;
};

template <class T>
class Philox final : public Kernel {
 public:
  explicit Philox(const StepDesc& step)
      : elements_(step.operands[2].numElements()),
        state_bytes_(static_cast<std::uint64_t>(step.attributes.integer("state_bytes"))) {}

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const State state = readState(p[0], state_bytes_);
    auto* out = reinterpret_cast<T*>(p[2]);
    const std::int64_t n = (elements_ + kPerCounter - 1) / kPerCounter;
    context.pool.parallelFor(n, kParallelCounters, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end; at += kBlock) {
        block(state, out, at, std::min(kBlock, end - at));
      }
    });
    const std::uint64_t low = state.low + static_cast<std::uint64_t>(n);
    const std::uint64_t next[3] = {state.key, low, state.high + (low < state.low ? 1 : 0)};
    std::memcpy(p[1], next, state_bytes_);
  }

 private:
  static constexpr std::int64_t kPerCounter = sizeof(T) == 8 ? 2 : 4;

  void block(const State& state, T* out, std::int64_t at, std::int64_t n) const {
    std::uint32_t words[4 * kBlock];
    const std::uint64_t low = state.low + static_cast<std::uint64_t>(at);
    counterBits().philox(words, low, state.high + (low < state.low ? 1 : 0), n, lowWord(state.key),
                         highWord(state.key));
    const std::int64_t first = at * kPerCounter;
    const std::int64_t count = std::min(n * kPerCounter, elements_ - first);
    for (std::int64_t i = 0; i < count; ++i) {
      if constexpr (sizeof(T) == 8) {
        out[first + i] = words[2 * i] | static_cast<std::uint64_t>(words[2 * i + 1]) << 32;
      } else {
        out[first + i] = static_cast<T>(words[i]);
      }
    }
  }

  std::int64_t elements_;
  std::uint64_t state_bytes_;
};

template <template <class> class Generator>
std::unique_ptr<Kernel> makeSized(const StepDesc& step) {
  return withBytes(sizeOf(step.operands[2].type), [&]<class T>(T) -> std::unique_ptr<Kernel> {
    return std::make_unique<Generator<T>>(step);
  });
}

void checkState(const StepCheck& check, std::int64_t most_bytes) {
  check.operands(3);
  const std::int64_t bytes = check.integer("state_bytes", 16, most_bytes);
  check.need(bytes % 8 == 0, "a state of words of 64 bits");
  const auto state = check.read(0).isContiguous();
  const auto element = static_cast<std::int64_t>(sizeOf(state->type));
  state.hasElements(bytes / element);
  check.written(1).isContiguous().hasTypeOf(state).hasElements(bytes / element);
  check.written(2).isContiguous();
}
void checkThreefry(StepCheck& check) { checkState(check, 16); }
void checkPhilox(StepCheck& check) { checkState(check, 24); }

const RegisterKernel kThreefry{"popx.rng_threefry", makeSized<Threefry>, checkThreefry};
const RegisterKernel kPhilox{"popx.rng_philox", makeSized<Philox>, checkPhilox};

}  // namespace
}  // namespace ipujax::engine
