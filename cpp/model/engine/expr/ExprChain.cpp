#include "engine/expr/ExprChain.hpp"

#include <algorithm>
#include <array>

namespace ipujax::engine::expr {

namespace {
using simd::ChainOperand;
using simd::Link;
using simd::LinkForms;
using simd::Source;

constexpr std::size_t kMostChained = 48;  ///< keeps a chain's table of memory below 256

thread_local int scopes_without_chains = 0;

bool isSelect(const VirtualStep& d) { return d.op == Op::kSelect; }
/// float and half values are held as float, so a cast between them only rounds.
bool isRounding(const VirtualStep& d) {
  return d.op == Op::kBitcast && d.step.kind == Kind::kMapRounded;
}

/// Whether links can do what the step does.
bool isChainable(const VirtualStep& d) {
  switch (d.step.kind) {
    case Kind::kLoadHalf:
    case Kind::kStoreHalf:
      return d.op == Op::kCount;
    case Kind::kMap:
    case Kind::kMapRounded:
      break;
    default:
      return false;
  }
  if (isRounding(d)) return true;
  if (d.args[1] >= 0 && d.args[1] == d.args[2]) return false;
  const ElementType type = simd::blockType(d.operand);
  const bool wide = sizeOf(type) == 4;
  if (isSelect(d)) return wide && d.args[0] != d.args[1];
  if (d.op == Op::kClamp) return wide && d.args[0] != d.args[1] && d.args[0] != d.args[2];
  const LinkForms forms = simd::linksOf(d.op, d.operand, d.result);
  if (d.args[1] >= 0 && d.args[0] == d.args[1]) return forms.both.has_value();
  return forms.first.has_value();
}

/// Writes the links of one run of steps; lives for one run.
class Linker {
 public:
  Linker(const std::vector<VirtualStep>& steps, const std::vector<ValueTraits>& values,
         const std::vector<std::ptrdiff_t>& last_use, VirtualChain& chain,
         std::vector<bool>& in_memory)
      : steps_(steps), values_(values), last_use_(last_use), chain_(chain), in_memory_(in_memory) {
    kept_.fill(-1);
  }

  void run() {
    for (at_ = chain_.begin; at_ < chain_.end; ++at_) link(steps_[at_]);
    add(Link::kEnd);
    chain_.series = simd::seriesOf(chain_.links);
    joinLinks();
  }

 private:
  void joinLinks() {
    std::vector<simd::ChainLink> joined;
    for (const auto& next : chain_.links)
      if (joined.empty() || !joined.back().join(next)) joined.push_back(next);
    chain_.links = std::move(joined);
  }

  std::size_t index(std::int32_t v) const { return static_cast<std::size_t>(v); }
  bool isAvailable(std::int32_t v) const {
    return values_[index(v)].scalar || in_memory_[index(v)];
  }
  /// Whether a later step reads the value.
  bool isNeededLater(std::int32_t v) const {
    return last_use_[index(v)] > static_cast<std::ptrdiff_t>(at_);
  }

  std::uint8_t memory(const VirtualChain::Memory& m) {
    auto& table = chain_.memory;
    auto found = std::find_if(table.begin(), table.end(),
                              [&](const auto& other) { return other.liesWhere(m); });
    if (found == table.end()) found = table.insert(found, m);
    return static_cast<std::uint8_t>(found - table.begin());
  }
  std::uint8_t memoryOf(std::int32_t v) {
    VirtualChain::Memory m;
    m.value = v;
    m.bytes = static_cast<std::uint8_t>(isMask(v) ? 1 : 4);
    return memory(m);
  }
  std::uint8_t keptMemory(std::size_t place) {
    VirtualChain::Memory m;
    m.kept = static_cast<std::int8_t>(place);
    m.bytes = 0;
    return memory(m);
  }
  ChainOperand operand(std::int32_t v) {
    const auto place = std::find(kept_.begin(), kept_.end(), v);
    if (place != kept_.end())
      return {isMask(v) ? Source::kKeptMask : Source::kMemory,
              keptMemory(static_cast<std::size_t>(place - kept_.begin()))};
    return {values_[index(v)].scalar ? Source::kScalar : Source::kMemory, memoryOf(v)};
  }
  void add(Link link, ChainOperand a = {}, ChainOperand b = {}) {
    simd::ChainLink next(link, a, b);
    auto& links = chain_.links;
    if (link > Link::kStoreHalf && link != Link::kEnd && !links.empty() && links.back().isLoad()) {
      next.loadFirst(links.back());
      links.pop_back();
    }
    links.push_back(next);
  }
  void addStore(Link link, std::uint8_t to) {
    chain_.memory[to].written = true;
    auto& last = chain_.links.back();
    if (link == Link::kStore && !last.isStore() && !last.stores())
      last.storeAfter(to);
    else
      add(link, {Source::kMemory, to});
  }
  bool isMask(std::int32_t v) const { return values_[index(v)].is_mask; }

  void store(std::int32_t v) {
    addStore(isMask(v) ? Link::kStoreBool : Link::kStore, memoryOf(v));
    in_memory_[index(v)] = true;
  }

  /// Called before the accumulator changes: keeps its value if a later step, or another operand of
  /// this one (`also`), needs it.
  void preserve(bool also) {
    const std::int32_t v = acc_;
    if (v < 0 || isKept(v) || isAvailable(v) || !(also || isNeededLater(v))) return;
    const auto place = std::find_if(kept_.begin(), kept_.end(), [&](std::int32_t k) {
      return k < 0 || isAvailable(k) || !isWanted(k);
    });
    if (place == kept_.end()) return store(v);
    *place = v;
    addStore(Link::kStore, operand(v).number);
  }
  bool isKept(std::int32_t v) const {
    return v >= 0 && std::find(kept_.begin(), kept_.end(), v) != kept_.end();
  }
  bool isWanted(std::int32_t v) const {
    const auto& args = steps_[at_].args;
    return isNeededLater(v) || std::find(args, args + 3, v) != args + 3;
  }

  /// Makes the accumulator hold v.
  void bring(std::int32_t v) {
    if (acc_ == v) return;
    preserve(acc_ >= 0 && isWanted(acc_));
    const ChainOperand from = operand(v);
    if (from.source == Source::kKeptMask)
      add(Link::kLoad, {Source::kMemory, from.number});
    else
      add(isMask(v) ? Link::kLoadBool : Link::kLoad, from);
    acc_ = v;
  }

  /// Whether the second of two operands goes to the accumulator.
  bool secondFirst(const VirtualStep& d, const LinkForms& forms) const {
    if (!forms.second) return false;
    if (d.args[0] == acc_) return false;
    if (d.args[1] == acc_) return true;
    if (isKept(d.args[0])) return false;
    if (isKept(d.args[1])) return true;
    return values_[index(d.args[0])].scalar;
  }

  void link(const VirtualStep& d) {
    if (d.step.kind == Kind::kLoadHalf) {
      preserve(false);
      VirtualChain::Memory m;
      m.place = d.step.args[0];
      m.bytes = 2;
      add(Link::kLoadHalf, {Source::kMemory, memory(m)});
      return finish(d);
    }
    if (d.step.kind == Kind::kStoreHalf) {
      bring(d.args[0]);
      VirtualChain::Memory m;
      m.output = d.output;
      m.bytes = 2;
      return addStore(Link::kStoreHalf, memory(m));
    }
    if (isSelect(d))
      linkSelect(d);
    else if (d.op == Op::kClamp)
      linkClamp(d);
    else
      linkOperation(d);
    if (d.step.kind == Kind::kMapRounded) add(Link::kRoundToHalf);
    finish(d);
  }

  void linkOperation(const VirtualStep& d) {
    if (isRounding(d)) {
      bring(d.args[0]);
      return preserve(false);
    }
    const LinkForms forms = simd::linksOf(d.op, d.operand, d.result);
    if (d.args[1] < 0 || d.args[0] == d.args[1]) {
      bring(d.args[0]);
      preserve(false);
      return add(d.args[1] < 0 ? *forms.first : *forms.both);
    }
    const bool second = secondFirst(d, forms);
    bring(d.args[second ? 1 : 0]);
    preserve(false);
    const std::int32_t other = d.args[second ? 0 : 1];
    add(special(second ? *forms.second : *forms.first, other), operand(other));
  }

  /// A cheaper link, if the operand is a constant that allows it.
  Link special(Link link, std::int32_t v) const {
    const auto& constant = values_[index(v)].constant;
    if (!constant) return link;
    const auto bits = static_cast<std::uint32_t>(*constant);
    if (link == Link::kShiftLeft && bits < 32) return Link::kShiftLeftFew;
    if (link == Link::kShiftRight && bits < 32) return Link::kShiftRightFew;
    if (link != Link::kMaximum && link != Link::kMinimum) return link;
    if (bits == 0) return link == Link::kMaximum ? Link::kMaximumOfZero : link;
    const float number = __builtin_bit_cast(float, bits);
    if (number != number || number == 0.0f) return link;
    return link == Link::kMaximum ? Link::kMaximumOfNumber : Link::kMinimumOfNumber;
  }

  void linkClamp(const VirtualStep& d) {
    const bool is_float = simd::blockType(d.operand) == ElementType::kFloat;
    const bool is_signed = d.operand == ElementType::kInt32;
    const Link most = is_float    ? Link::kMaximum
                      : is_signed ? Link::kMaximumInt
                                  : Link::kMaximumUInt;
    const Link least = is_float    ? Link::kMinimum
                       : is_signed ? Link::kMinimumInt
                                   : Link::kMinimumUInt;
    bring(d.args[0]);
    preserve(false);
    add(special(most, d.args[1]), operand(d.args[1]));
    add(special(least, d.args[2]), operand(d.args[2]));
  }

  void linkSelect(const VirtualStep& d) {
    const auto [if_true, if_false, predicate] = d.args;
    if (acc_ == if_true || (acc_ != predicate && acc_ != if_false && isKept(if_true))) {
      bring(if_true);
      preserve(false);
      return add(Link::kSelectTrue, operand(if_false), operand(predicate));
    }
    if (acc_ == if_false) {
      preserve(false);
      return add(Link::kSelectFalse, operand(if_true), operand(predicate));
    }
    bring(predicate);
    preserve(false);
    add(Link::kSelect, operand(if_true), operand(if_false));
  }

  /// Called when the accumulator holds the step's result.
  void finish(const VirtualStep& d) {
    acc_ = d.out;
    const bool leaves = last_use_[index(d.out)] >= static_cast<std::ptrdiff_t>(chain_.end);
    if (leaves || values_[index(d.out)].direct) store(d.out);
  }

  const std::vector<VirtualStep>& steps_;
  const std::vector<ValueTraits>& values_;
  const std::vector<std::ptrdiff_t>& last_use_;
  VirtualChain& chain_;
  std::vector<bool>& in_memory_;
  std::size_t at_ = 0;
  std::int32_t acc_ = -1;
  std::array<std::int32_t, simd::kMostKept> kept_;  ///< the value in each place, or -1
};
}  // namespace

WithoutChains::WithoutChains() { ++scopes_without_chains; }
WithoutChains::~WithoutChains() { --scopes_without_chains; }

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
  for (std::size_t begin = 0; begin < steps.size() && scopes_without_chains == 0;) {
    std::size_t end = begin;
    while (end < steps.size() && end - begin < kMostChained && isChainable(steps[end])) ++end;
    if (end - begin >= 2) {
      VirtualChain chain;
      chain.begin = begin;
      chain.end = end;
      for (std::size_t k = begin; k < end; ++k)
        if (steps[k].out >= 0) in_memory[static_cast<std::size_t>(steps[k].out)] = false;
      Linker(steps, values, last_use, chain, in_memory).run();
      chains.push_back(std::move(chain));
    }
    begin = std::max(end, begin + 1);
  }
  stays.assign(values.size(), false);
  for (std::size_t v = 0; v < values.size(); ++v) stays[v] = !in_memory[v];
  return chains;
}

}  // namespace ipujax::engine::expr
