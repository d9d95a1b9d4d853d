#include "engine/expr/ExprChain.hpp"

#include <algorithm>
#include <map>

#include "engine/code/StripCode.hpp"
#include "engine/expr/StripOps.hpp"

namespace ipujax::engine::expr {

namespace {
using code::StripBuilder;
using code::StripOp;

thread_local int scopes_without_chains = 0;

/// float and half values are held as float, so a cast between them only rounds.
bool isRounding(const VirtualStep& d) {
  return d.op == Op::kBitcast && d.step.kind == Kind::kMapRounded;
}

/// Whether code can do what the step does; `divisor`: its second operand, if that is known.
bool isChainable(const VirtualStep& d, std::optional<std::uint32_t> divisor = {}) {
  switch (d.step.kind) {
    case Kind::kLoadHalf:
    case Kind::kStoreHalf:
      return d.op == Op::kCount;
    case Kind::kMap:
    case Kind::kMapRounded:
      return isRounding(d) || hasStrip(d.op, d.operand, d.result, divisor);
    default:
      return false;
  }
}

/// The low bits of a value that is known.
std::optional<std::uint32_t> constantOf(std::int32_t v, const std::vector<ValueTraits>& values) {
  if (v < 0) return {};
  const auto& constant = values[static_cast<std::size_t>(v)].constant;
  if (!constant) return {};
  return static_cast<std::uint32_t>(*constant);
}

/// Writes the program of one run of steps; lives for one run.
class Writer {
 public:
  Writer(const std::vector<VirtualStep>& steps, const std::vector<ValueTraits>& values,
         const std::vector<std::ptrdiff_t>& last_use, VirtualChain& chain)
      : steps_(steps), values_(values), last_use_(last_use), chain_(chain) {}

  /// The values that the chain leaves in memory; the code is null if there can be none.
  std::vector<std::int32_t> run() {
    for (std::size_t s = chain_.begin; s < chain_.end; ++s) add(steps_[s]);
    chain_.code = code::stripCode(builder_.take());
    return std::move(stored_);
  }

 private:
  static std::size_t index(std::int32_t v) { return static_cast<std::size_t>(v); }

  std::uint32_t memory(const VirtualChain::Memory& m) {
    auto& table = chain_.memory;
    auto found = std::find_if(table.begin(), table.end(),
                              [&](const auto& other) { return other.liesWhere(m); });
    if (found == table.end()) found = table.insert(found, m);
    return static_cast<std::uint32_t>(found - table.begin());
  }
  std::uint32_t memoryOf(std::int32_t v) {
    VirtualChain::Memory m;
    m.value = v;
    m.bytes = static_cast<std::uint8_t>(sizeOf(simd::blockType(values_[index(v)].type)));
    return memory(m);
  }
  void addStore(StripOp op, std::uint32_t to, StripBuilder::Value value) {
    chain_.memory[to].written = true;
    builder_.memory(op, to, value);
  }

  /// A value that an earlier step of the chain made, or else one that is loaded at its first use.
  StripBuilder::Value valueOf(std::int32_t v) {
    const auto [place, is_new] = known_.try_emplace(v, -1);
    if (!is_new) return place->second;
    const ValueTraits& traits = values_[index(v)];
    const Access access = accessOf(traits.type);
    return place->second =
               builder_.memory(traits.scalar ? access.scalar : access.load, memoryOf(v));
  }

  struct Access {
    StripOp load, scalar, store;
  };
  static Access accessOf(ElementType type) {
    if (type == ElementType::kBool)
      return {StripOp::kLoadMask, StripOp::kScalarMask, StripOp::kStoreMask};
    if (type == ElementType::kUInt16)  // the bits of a bfloat16
      return {StripOp::kLoadBFloat16, StripOp::kScalar, StripOp::kStoreBFloat16};
    return {StripOp::kLoad, StripOp::kScalar, StripOp::kStore};
  }

  void add(const VirtualStep& d) {
    if (d.step.kind == Kind::kStoreHalf) {
      VirtualChain::Memory m;
      m.output = d.output;
      m.bytes = 2;
      const auto value = valueOf(d.args[0]);
      return addStore(StripOp::kStoreHalf, memory(m), value);
    }
    auto value = d.step.kind == Kind::kLoadHalf ? loadedHalf(d) : computed(d);
    if (d.step.kind == Kind::kMapRounded) value = builder_.add(StripOp::kRoundToHalf, value);
    known_[d.out] = value;
    const bool leaves = last_use_[index(d.out)] >= static_cast<std::ptrdiff_t>(chain_.end);
    const ValueTraits& traits = values_[index(d.out)];
    if (!leaves && !traits.direct) return;
    addStore(accessOf(traits.type).store, memoryOf(d.out), value);
    stored_.push_back(d.out);
  }

  StripBuilder::Value loadedHalf(const VirtualStep& d) {
    VirtualChain::Memory m;
    m.place = d.step.args[0];
    m.bytes = 2;
    return builder_.memory(StripOp::kLoadHalf, memory(m));
  }

  StripBuilder::Value computed(const VirtualStep& d) {
    if (isRounding(d)) return valueOf(d.args[0]);
    StripOperands operands;
    for (std::size_t a = 0; a < 3; ++a) {
      if (d.args[a] < 0) continue;
      operands[a].value = valueOf(d.args[a]);
      operands[a].constant = constantOf(d.args[a], values_);
    }
    return *addOperation(builder_, d.op, d.operand, d.result, operands);
  }

  const std::vector<VirtualStep>& steps_;
  const std::vector<ValueTraits>& values_;
  const std::vector<std::ptrdiff_t>& last_use_;
  VirtualChain& chain_;
  StripBuilder builder_;
  std::map<std::int32_t, StripBuilder::Value> known_;  ///< by value of the plan
  std::vector<std::int32_t> stored_;
};
}  // namespace

WithoutChains::WithoutChains() { ++scopes_without_chains; }
WithoutChains::~WithoutChains() { --scopes_without_chains; }
bool mayMakeCode() { return scopes_without_chains == 0 && code::stripLanes() > 0; }

void orderForChains(std::vector<VirtualStep>& steps, std::size_t num_values) {
  std::vector<std::vector<std::size_t>> users(num_values);
  std::vector<int> waiting(steps.size(), 0);
  std::vector<bool> made(num_values, false);
  for (const auto& d : steps)
    if (d.out >= 0) made[static_cast<std::size_t>(d.out)] = true;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    for (auto v : steps[k].args) {
      if (v < 0 || !made[static_cast<std::size_t>(v)]) continue;
      users[static_cast<std::size_t>(v)].push_back(k);
      ++waiting[k];
    }
  }
  std::vector<bool> done(steps.size(), false);
  std::vector<VirtualStep> ordered;
  ordered.reserve(steps.size());
  for (std::size_t first = 0; first < steps.size(); ++first) {
    std::size_t k = first;
    while (k < steps.size() && !done[k]) {
      done[k] = true;
      ordered.push_back(steps[k]);
      std::size_t next = steps.size();
      if (steps[k].out >= 0) {
        for (std::size_t u : users[static_cast<std::size_t>(steps[k].out)])
          if (--waiting[u] == 0 && next == steps.size()) next = u;
        if (next < steps.size() && !(isChainable(steps[k]) && isChainable(steps[next])))
          next = steps.size();
      }
      k = next;
    }
  }
  steps = std::move(ordered);
}

std::vector<VirtualChain> findChains(const std::vector<VirtualStep>& steps,
                                     const std::vector<ValueTraits>& values,
                                     std::vector<bool>& stays) {
  std::vector<std::ptrdiff_t> last_use(values.size(), -1);
  std::vector<bool> in_memory(values.size(), true);
  for (std::size_t k = 0; k < steps.size(); ++k)
    for (auto v : steps[k].args)
      if (v >= 0) last_use[static_cast<std::size_t>(v)] = static_cast<std::ptrdiff_t>(k);
  std::vector<VirtualChain> chains;
  for (std::size_t begin = 0; begin < steps.size() && mayMakeCode();) {
    std::size_t end = begin;
    while (end < steps.size() && end - begin < kMostChained &&
           isChainable(steps[end], constantOf(steps[end].args[1], values)))
      ++end;
    if (end - begin >= 2) {
      VirtualChain chain;
      chain.begin = begin;
      chain.end = end;
      const auto stored = Writer(steps, values, last_use, chain).run();
      if (chain.code) {
        for (std::size_t k = begin; k < end; ++k)
          if (steps[k].out >= 0) in_memory[static_cast<std::size_t>(steps[k].out)] = false;
        for (const auto v : stored) in_memory[static_cast<std::size_t>(v)] = true;
        chains.push_back(std::move(chain));
      }
    }
    begin = std::max(end, begin + 1);
  }
  stays.assign(values.size(), false);
  for (std::size_t v = 0; v < values.size(); ++v) stays[v] = !in_memory[v];
  return chains;
}

}  // namespace ipujax::engine::expr
