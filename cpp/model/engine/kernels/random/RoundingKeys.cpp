#include <array>
#include <cstring>
#include <limits>

#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/random/WorkerSeeds.hpp"

/// Host kernels of the two-word keys from which the random bits of stochastic rounding are derived.
/// An IPU's tiles round stochastically without extra work, so these cost nothing.
namespace ipujax::engine {
namespace {

using Words = std::array<std::uint32_t, 2>;

Words keyOf(std::uint64_t words) {
  return {static_cast<std::uint32_t>(words), static_cast<std::uint32_t>(words >> 32)};
}

/// Operand: the key of the run. Each replica uses the key of the replica that "replicas" names.
std::unique_ptr<Kernel> makeRunKey(const StepDesc& step) {
  const auto replicas = step.attributes.integers("replicas");
  return kernelOf([replicas](RunContext& context, std::span<std::byte* const> p) {
    const Words key = context.seed.of(static_cast<std::uint32_t>(replicas[context.replica]));
    std::memcpy(p[0], key.data(), sizeof(key));
  });
}

/// Operands: a key, a number n, the key derived for "offset" + "factor" * n.
std::unique_ptr<Kernel> makeFoldKey(const StepDesc& step) {
  const auto offset = static_cast<std::uint32_t>(step.attributes.integer("offset"));
  const auto factor = static_cast<std::uint32_t>(step.attributes.integer("factor"));
  return kernelOf([=](RunContext&, std::span<std::byte* const> p) {
    std::uint64_t key;
    std::uint32_t number;
    std::memcpy(&key, p[0], sizeof(key));
    std::memcpy(&number, p[1], sizeof(number));
    const std::uint64_t salt = seeds::detail::kRound * (offset + factor * number + 1);
    const Words folded = keyOf(seeds::detail::mixed(key ^ seeds::detail::mixed(salt)));
    std::memcpy(p[2], folded.data(), sizeof(folded));
  });
}

/// Operand: a count, set so that the next one is 0.
std::unique_ptr<Kernel> makeRestartCount(const StepDesc&) {
  return kernelOf([](RunContext&, std::span<std::byte* const> p) {
    const std::uint32_t before = std::numeric_limits<std::uint32_t>::max();
    std::memcpy(p[0], &before, sizeof(before));
  });
}

std::unique_ptr<Kernel> makeCount(const StepDesc&) {
  return kernelOf([](RunContext&, std::span<std::byte* const> p) {
    std::uint32_t number;
    std::memcpy(&number, p[0], sizeof(number));
    ++number;
    std::memcpy(p[0], &number, sizeof(number));
  });
}

/// Operands: the state of poprand's generator, which counts this as a call; a key.
std::unique_ptr<Kernel> makeDrawKey(const StepDesc&) {
  return kernelOf([](RunContext&, std::span<std::byte* const> p) {
    std::uint32_t words[seeds::kWords];
    std::memcpy(words, p[0], sizeof(words));
    seeds::unscramble(words);
    ++words[3];
    seeds::scramble(words);
    std::memcpy(p[0], words, sizeof(words));
    std::memcpy(p[1], words, sizeof(Words));
  });
}

void checkRunKey(StepCheck& check) {
  check.operands(1);
  check.written(0).isOf(ElementType::kUInt32).isContiguous().hasElements(2);
  const auto num_replicas = check.image().signature.num_replicas;
  for (const auto replica : check.integers("replicas", num_replicas))
    check.need(replica >= 0 && replica < static_cast<std::int64_t>(num_replicas),
               "keys of its program's replicas");
}

void checkFoldKey(StepCheck& check) {
  check.operands(3);
  check.read(0).isOf(ElementType::kUInt32).isContiguous().hasElements(2);
  check.read(1).isOf(ElementType::kUInt32).isOne();
  check.written(2).isOf(ElementType::kUInt32).isContiguous().hasElements(2);
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  check.integer("offset", -kMost, kMost);
  check.integer("factor", -kMost, kMost);
}

void checkRestartCount(StepCheck& check) {
  check.operands(1);
  check.written(0).isOf(ElementType::kUInt32).isOne();
}

void checkCount(StepCheck& check) {
  check.operands(1);
  check.updated(0).isOf(ElementType::kUInt32).isOne();
}

void checkDrawKey(StepCheck& check) {
  check.operands(2);
  check.updated(0).isOfBytes(4).isContiguous().hasElements(seeds::kWords);
  check.written(1).isOf(ElementType::kUInt32).isContiguous().hasElements(2);
}

const RegisterKernel kRunKey{"popx.run_key", makeRunKey, checkRunKey};
const RegisterKernel kFoldKey{"popx.fold_key", makeFoldKey, checkFoldKey};
const RegisterKernel kRestartCount{"popx.restart_count", makeRestartCount, checkRestartCount};
const RegisterKernel kCount{"popx.count", makeCount, checkCount};
const RegisterKernel kDrawKey{"poprand.draw_key", makeDrawKey, checkDrawKey};

}  // namespace
}  // namespace ipujax::engine
