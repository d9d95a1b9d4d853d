#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "engine/Half.hpp"
#include "engine/Workspace.hpp"
#include "engine/expr/ExprPlan.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine::expr {

void execute(const Step& s, const std::byte* const* bases, std::int64_t n) {
  const auto at = [&](Place p) { return bases[p.base] + p.offset; };
  auto* out = const_cast<std::byte*>(at(s.out));
  switch (s.kind) {
    case Kind::kMap:
      s.fn(at(s.args[0]), at(s.args[1]), at(s.args[2]), out, n, s.immediate);
      break;
    case Kind::kMapRounded:
      s.fn(at(s.args[0]), at(s.args[1]), at(s.args[2]), out, n, s.immediate);
      simd::roundToHalf(reinterpret_cast<float*>(out), n);
      break;
    case Kind::kLoadHalf:
      simd::halfToFloat(reinterpret_cast<const std::uint16_t*>(at(s.args[0])),
                        reinterpret_cast<float*>(out), n);
      break;
    case Kind::kStoreHalf:
      simd::floatToHalf(reinterpret_cast<const float*>(at(s.args[0])),
                        reinterpret_cast<std::uint16_t*>(out), n);
      break;
    case Kind::kCopy:
      if (at(s.args[0]) != out)
        std::memcpy(out, at(s.args[0]), static_cast<std::size_t>(n) * s.bytes);
      break;
    case Kind::kFill:
      simd::fill(out, at(s.args[0]), s.bytes, n);
      break;
    case Kind::kRandom:
    case Kind::kChain:
      break;  // handled by runSteps
  }
}

namespace {

using Pointers = std::array<std::byte*, kMostMemory>;

void findMemory(const Chain& chain, const std::byte* const* bases, Pointers& at) {
  for (std::size_t i = 0; i < chain.memory.size(); ++i) {
    const Place place = chain.memory[i].place;
    at[i] = const_cast<std::byte*>(bases[place.base] + place.offset);
  }
}

}  // namespace

void execute(const Chain& chain, const std::byte* const* bases, std::int64_t n) {
  Pointers at;
  const std::size_t num_memory = chain.memory.size();
  findMemory(chain, bases, at);
  const std::int64_t lanes = chain.lanes;
  const std::int64_t rest = n % lanes;
  if (rest == 0) return chain.code->run(at.data(), n);
  if (!chain.has_external) return chain.code->run(at.data(), n - rest + lanes);
  if (n > rest) chain.code->run(at.data(), n - rest);
  // The last vector: operands outside the scratch memory are moved to where there is room for all
  // lanes.
  for (std::size_t i = 0; i < num_memory; ++i) at[i] += chain.steps[i] * (n - rest);
  alignas(kLine) std::byte room[kMostMemory * kLine];
  std::byte* outside[kMostMemory];
  const auto restBytes = [&](std::size_t i) {
    return static_cast<std::size_t>(rest) * chain.steps[i];
  };
  for (std::size_t i = 0; i < num_memory; ++i) {
    if (!chain.memory[i].external) continue;
    outside[i] = at[i];
    at[i] = room + i * kLine;
    std::memcpy(at[i], outside[i], restBytes(i));
  }
  chain.code->run(at.data(), lanes);
  for (std::size_t i = 0; i < num_memory; ++i) {
    if (chain.memory[i].external && chain.memory[i].written)
      std::memcpy(outside[i], room + i * kLine, restBytes(i));
  }
}

struct ExprEvaluator::Impl : ExprPlan {
  explicit Impl(ExprPlan plan) : ExprPlan(std::move(plan)) {}

  /// Whether the pairs in `apart` are different memory. An output either is exactly an input's
  /// memory or does not overlap it.
  bool fits(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs) const {
    return std::ranges::none_of(
        apart, [&](const auto& pair) { return outputs[pair.first] == inputs[pair.second]; });
  }

  void runSteps(const std::byte* const* bases, std::int64_t n, std::uint64_t first = 0) const {
    for (const auto& s : steps) {
      if (s.kind == Kind::kChain)
        execute(chains[static_cast<std::size_t>(s.immediate)], bases, n);
      else if (s.kind == Kind::kRandom)
        simd::randomBits(const_cast<std::byte*>(bases[s.out.base] + s.out.offset), n,
                         static_cast<std::uint64_t>(s.immediate) * 0x9e3779b97f4a7c15ull, first);
      else
        execute(s, bases, n);
    }
  }

  /// Runs any number n of elements; may advance the bases of inputs and outputs.
  void runAlong(const std::byte** bases, std::int64_t n, std::uint64_t first) const {
    // Blocks are only needed for values that one step leaves to the next.
    const bool at_once = steps.size() == 1 && num_slots == 0;
    const std::int64_t block = at_once ? n : kBlock;
    for (std::int64_t begin = 0; begin < n; begin += block) {
      const std::int64_t m = std::min(block, n - begin);
      runSteps(bases, m, first);
      if (begin + m == n) return;
      first += static_cast<std::uint64_t>(m);
      for (std::size_t i = 0; i < num_inputs; ++i)
        bases[i] += input_step[i] * static_cast<std::size_t>(m);
      for (std::size_t j = 0; j < num_outputs; ++j)
        bases[num_inputs + j] += output_step[j] * static_cast<std::size_t>(m);
    }
  }

  /// The plan's chain, if it is the only step and n elements are whole vectors; else null.
  const Chain* onlyChain(std::int64_t n) const {
    const bool is_one = steps.size() == 1 && steps[0].kind == Kind::kChain;
    if (!is_one) return nullptr;
    const Chain& chain = chains[static_cast<std::size_t>(steps[0].immediate)];
    return n % chain.lanes == 0 ? &chain : nullptr;
  }

  /// Runs rows of n elements; advances the bases of inputs and outputs by `row_bytes` per row.
  void runChainAlongRows(const Chain& chain, const std::byte** bases, std::int64_t n,
                         std::int64_t rows, std::span<const std::int64_t> row_bytes) const {
    Pointers at;
    std::array<std::int64_t, kMostMemory> to_next;
    findMemory(chain, bases, at);
    for (std::size_t i = 0; i < chain.memory.size(); ++i) {
      const std::uint32_t base = chain.memory[i].place.base;
      to_next[i] = base < scratchBase() ? row_bytes[base] : 0;
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      for (const auto& s : uniform_steps) execute(s, bases, 1);
      for (std::size_t i = 0; !uniform_steps.empty() && i < scratchBase(); ++i)
        bases[i] += row_bytes[i];
      chain.code->run(at.data(), n);
      for (std::size_t i = 0; i < chain.memory.size(); ++i) at[i] += to_next[i];
    }
  }

  const std::byte** bindBases(const std::byte* const* inputs, std::byte* const* outputs,
                              std::byte* scratch) const {
    auto** bases = reinterpret_cast<const std::byte**>(scratch);
    for (std::size_t i = 0; inputs && i < num_inputs; ++i) bases[i] = inputs[i];
    for (std::size_t j = 0; outputs && j < num_outputs; ++j) bases[num_inputs + j] = outputs[j];
    bases[scratchBase()] = scratch;
    bases[constantBase()] = reinterpret_cast<const std::byte*>(constants.data());
    return bases;
  }
};

ExprEvaluator::ExprEvaluator(const ExprProgram& program, const std::vector<bool>& uniform,
                             bool padded)
    : impl_(std::make_unique<const Impl>(makePlan(program, uniform, padded))) {
  // A single result is written last in any case.
  if (program.numOutputs() > 1)
    at_once_ = std::make_unique<const Impl>(makePlan(program, uniform, padded, Writes::kAtOnce));
}
ExprEvaluator::~ExprEvaluator() = default;
ExprEvaluator::ExprEvaluator(ExprEvaluator&&) noexcept = default;

std::size_t ExprEvaluator::scratchBytes() const { return impl_->scratch_bytes; }
std::size_t ExprEvaluator::numRegisters() const { return impl_->num_slots; }

void ExprEvaluator::prepare(const std::byte* const* inputs, std::byte* scratch) const {
  if (impl_->uniform_steps.empty()) return;
  const auto** bases = impl_->bindBases(inputs, nullptr, scratch);
  for (const auto& s : impl_->uniform_steps) execute(s, bases, 1);
}

void ExprEvaluator::runBlock(const std::byte* const* inputs, std::byte* const* outputs,
                             std::int64_t n, std::byte* scratch) const {
  const auto** bases = impl_->bindBases(inputs, outputs, scratch);
  impl_->runSteps(bases, n);
}

void ExprEvaluator::runRows(std::span<const std::byte* const> inputs,
                            std::span<std::byte* const> outputs, std::int64_t n, std::int64_t rows,
                            std::span<const std::int64_t> row_bytes, std::uint64_t first) const {
  const std::size_t num_inputs = impl_->num_inputs;
  if (inputs.size() != num_inputs || outputs.size() != impl_->num_outputs)
    throw std::invalid_argument("[ExprEvaluator::run] needs " + std::to_string(num_inputs) +
                                " inputs and " + std::to_string(impl_->num_outputs) +
                                " outputs; got " + std::to_string(inputs.size()) + " and " +
                                std::to_string(outputs.size()) + ".");
  const Impl& plan = at_once_ && at_once_->fits(inputs, outputs) ? *at_once_ : *impl_;
  Workspace workspace;
  std::byte* scratch = workspace.get(static_cast<std::int64_t>(plan.scratch_bytes));
  const auto** bases = plan.bindBases(inputs.data(), outputs.data(), scratch);
  if (const Chain* chain = rows > 1 ? plan.onlyChain(n) : nullptr)
    return plan.runChainAlongRows(*chain, bases, n, rows, row_bytes);
  for (std::int64_t row = 0; row < rows; ++row) {
    if (row > 0) {
      for (std::size_t i = 0; i < num_inputs; ++i) bases[i] = inputs[i] + row * row_bytes[i];
      for (std::size_t j = 0; j < outputs.size(); ++j)
        bases[num_inputs + j] = outputs[j] + row * row_bytes[num_inputs + j];
    }
    for (const auto& s : plan.uniform_steps) execute(s, bases, 1);
    plan.runAlong(bases, n, first);
    first += static_cast<std::uint64_t>(n);
  }
}

void ExprEvaluator::run(std::span<const std::byte* const> inputs,
                        std::span<std::byte* const> outputs, std::int64_t n,
                        std::uint64_t first) const {
  runRows(inputs, outputs, n, 1, {}, first);
}

}  // namespace ipujax::engine::expr
