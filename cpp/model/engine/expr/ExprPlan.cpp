#include "engine/expr/ExprPlan.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "engine/Half.hpp"
#include "engine/code/StripCode.hpp"
#include "engine/expr/ExprChain.hpp"
#include "engine/expr/ExprRotations.hpp"

namespace ipujax::engine::expr {

namespace {
using simd::blockType;

/// Builds an evaluator's steps; lives for one construction.
class Planner {
 public:
  Planner(const ExprProgram& program, const std::vector<bool>& uniform, bool padded, Writes writes)
      : program_(program),
        padded_(padded),
        at_once_(writes == Writes::kAtOnce),
        num_inputs_(program.numInputs()),
        num_values_(num_inputs_ + program.instructions().size()) {
    is_uniform_.assign(num_values_, false);
    is_constant_.assign(num_values_, false);
    source_.resize(num_values_);
    for (std::size_t v = 0; v < num_values_; ++v) source_[v] = static_cast<std::int32_t>(v);
    for (std::size_t i = 0; i < num_inputs_ && i < uniform.size(); ++i) is_uniform_[i] = uniform[i];
  }

  void plan(ExprPlan& plan) {
    plan.num_inputs = num_inputs_;
    plan.num_outputs = program_.numOutputs();
    base_ = plan.scratchBase();
    constant_base_ = plan.constantBase();
    place_.assign(num_values_, Place{});
    placed_.assign(num_values_, false);
    raw_.assign(num_values_, false);
    plan.constants.assign(2 * num_values_ + 1, 0);
    constants_ = plan.constants.data();
    uniform_at_ = roundUpToLine(plan.numBases() * sizeof(void*));
    for (std::size_t i = 0; i < num_inputs_; ++i) {
      const std::size_t bytes = sizeOf(program_.inputTypes()[i]);
      plan.input_step.push_back(is_uniform_[i] ? 0 : bytes);
      raw_[i] = true;
      place_[i] = {static_cast<std::uint32_t>(i), 0};
      if (program_.inputTypes()[i] != ElementType::kHalf) placed_[i] = true;
    }
    for (auto t : program_.outputTypes()) plan.output_step.push_back(sizeOf(t));
    for (std::size_t k = 0; k < program_.instructions().size(); ++k) addInstruction(k);
    orderForChains(steps_, num_values_);
    addOutputs();
    allocate(plan);
    plan.uniform_steps = std::move(uniform_steps_);
    plan.num_slots = num_slots_;
    plan.scratch_bytes = scratch_bytes_;
  }

 private:
  ElementType typeOf(std::int32_t v) const { return program_.typeOf(v); }
  std::size_t index(std::int32_t v) const { return static_cast<std::size_t>(v); }
  std::int32_t numbered(std::size_t k) const { return static_cast<std::int32_t>(num_inputs_ + k); }

  /// The operand as steps read it: a half input is loaded to float first.
  std::int32_t use(std::int32_t v) {
    v = source_[index(v)];
    if (placed_[index(v)] || is_constant_[index(v)]) return v;
    if (index(v) < num_inputs_) {  // a half input, on its first use
      if (is_uniform_[index(v)]) {
        Step s;
        s.kind = Kind::kLoadHalf;
        s.args[0] = place_[index(v)];
        s.out = nextUniform();
        uniform_steps_.push_back(s);
        place_[index(v)] = s.out;
      } else {
        VirtualStep d;
        d.step.kind = Kind::kLoadHalf;
        d.step.args[0] = place_[index(v)];
        d.out = v;
        steps_.push_back(d);
        raw_[index(v)] = false;
      }
      placed_[index(v)] = true;
    }
    return v;
  }

  Place nextUniform() {
    const Place p{base_, static_cast<std::uint32_t>(uniform_at_)};
    uniform_at_ += 8;
    return p;
  }

  void addInstruction(std::size_t k) {
    const Instruction& i = program_.instructions()[k];
    const std::int32_t v = numbered(k);
    if (i.op == Op::kConstant) return setConstant(v, i);
    if (i.op == Op::kRandomBits) return addRandom(v, i);
    if (isAnotherName(i)) {
      const std::int32_t from = use(i.args[0]);
      source_[index(v)] = from;
      is_uniform_[index(v)] = is_uniform_[index(from)];
      is_constant_[index(v)] = is_constant_[index(from)];
      return;
    }
    VirtualStep d;
    if (isRawHalfBitcast(i)) {
      d.args[0] = i.args[0];
    } else {
      for (int a = 0; a < numOperands(i.op); ++a)
        d.args[a] = use(i.args[static_cast<std::size_t>(a)]);
    }
    d.out = v;
    chooseStep(i, d);
    commit(d, v);
  }

  void addRandom(std::int32_t v, const Instruction& i) {
    VirtualStep d;
    d.step.kind = Kind::kRandom;
    d.step.immediate = i.immediate;
    d.out = v;
    steps_.push_back(d);
    placed_[index(v)] = true;
  }

  /// Whether the result is held like its operand: in registers, types of few bytes all differ.
  bool isAnotherName(const Instruction& i) const {
    if (i.type == ElementType::kHalf) return false;
    if (i.op == Op::kCast)  // a half is held as a float
      return blockType(i.type) == blockType(typeOf(i.args[0]));
    return i.op == Op::kBitcast && typeOf(i.args[0]) != ElementType::kHalf && sizeOf(i.type) >= 4;
  }

  /// Whether the bits of a half input are taken as they are, so that no NaN changes.
  bool isRawHalfBitcast(const Instruction& i) const {
    return i.op == Op::kBitcast && i.type != ElementType::kHalf && index(i.args[0]) < num_inputs_ &&
           typeOf(i.args[0]) == ElementType::kHalf && raw_[index(i.args[0])] &&
           !is_uniform_[index(i.args[0])];
  }

  void chooseStep(const Instruction& i, VirtualStep& d) {
    const ElementType from = typeOf(i.args[0]);
    Op op = i.op;
    d.op = op;
    d.operand = from;
    d.result = i.type;
    d.step.immediate = i.immediate;
    if (op == Op::kBitcast && from == ElementType::kHalf) {
      d.step.kind = isRawHalfBitcast(i) ? Kind::kCopy : Kind::kStoreHalf;
      d.step.bytes = 2;
      return;
    }
    if (op == Op::kBitcast && i.type == ElementType::kHalf) {
      d.step.kind = Kind::kLoadHalf;
      return;
    }
    const bool half = i.type == ElementType::kHalf;
    d.step.kind = half && !has(op, kKeepsHalves) ? Kind::kMapRounded : Kind::kMap;
    if (op == Op::kCast && blockType(from) == blockType(i.type))
      d.op = op = Op::kBitcast;  // float->half
    unsigned scalars = 0;
    bool all = true;
    for (int a = 0; a < numOperands(op); ++a) {
      const bool u = isScalar(d.args[a]);
      scalars |= static_cast<unsigned>(u) << a;
      all = all && u;
    }
    d.step.fn = simd::findMap({op, from, i.type, all ? 0 : scalars});
    if (!d.step.fn)
      throw std::invalid_argument(std::string("[ExprEvaluator] needs an operation the model has; "
                                              "got ") +
                                  nameOf(op) + " of " + engine::nameOf(from) + ".");
  }

  bool isScalar(std::int32_t v) const { return is_constant_[index(v)] || is_uniform_[index(v)]; }

  void setConstant(std::int32_t v, const Instruction& i) {
    std::uint64_t bits = static_cast<std::uint64_t>(i.immediate);
    if (i.type == ElementType::kHalf)
      bits =
          __builtin_bit_cast(std::uint32_t, halfToFloat(static_cast<std::uint16_t>(i.immediate)));
    constants_[index(v)] = bits;
    is_constant_[index(v)] = true;
    place_[index(v)] = {constant_base_, static_cast<std::uint32_t>(index(v) * 8)};
    placed_[index(v)] = true;
  }

  /// Runs a step of constants now; steps of uniform values run once per call, others per block.
  void commit(VirtualStep& d, std::int32_t v) {
    bool constant = true;
    bool uniform = true;
    for (auto a : d.args) {
      if (a < 0) continue;
      constant = constant && is_constant_[index(a)];
      uniform = uniform && isScalar(a);
    }
    if (!uniform) {
      steps_.push_back(d);
      placed_[index(v)] = true;
      return;
    }
    for (int a = 0; a < 3; ++a)
      if (d.args[a] >= 0) d.step.args[a] = place_[index(d.args[a])];
    if (constant) {
      is_constant_[index(v)] = true;
      d.step.out = {constant_base_, static_cast<std::uint32_t>(index(v) * 8)};
      std::vector<const std::byte*> bases(constant_base_ + 1, nullptr);
      bases[constant_base_] = reinterpret_cast<const std::byte*>(constants_);
      for (int a = 0; a < 3; ++a)
        if (d.args[a] < 0) d.step.args[a] = {constant_base_, 0};
      execute(d.step, bases.data(), 1);
    } else {
      is_uniform_[index(v)] = true;
      d.step.out = nextUniform();
      uniform_steps_.push_back(d.step);
    }
    place_[index(v)] = d.step.out;
    placed_[index(v)] = true;
  }

  void addOutputs() {
    const auto& outputs = program_.outputs();
    const bool many = outputs.size() > 1;
    std::vector<VirtualStep> stores;
    for (std::size_t j = 0; j < outputs.size(); ++j) {
      const std::int32_t v = source_[index(outputs[j])];
      const ElementType type = typeOf(outputs[j]);
      VirtualStep d;
      d.output = static_cast<std::int32_t>(j);
      d.step.bytes = static_cast<std::uint8_t>(sizeOf(type));
      const bool half = type == ElementType::kHalf;
      const bool input = index(v) < num_inputs_ && (raw_[index(v)] || half);
      if (isScalar(v)) {
        d.step.kind = Kind::kFill;
        d.args[0] = uniformOutput(v, type, input);
      } else if (input && many) {  // read now: another output may be this input's memory
        d.step.kind = Kind::kCopy;
        d.args[0] = copiedInput(v, type);
      } else if (input) {
        d.step.kind = Kind::kCopy;
        d.args[0] = v;
      } else {
        d.step.kind = half ? Kind::kStoreHalf : Kind::kCopy;
        d.args[0] = use(v);
      }
      stores.push_back(d);
    }
    for (const VirtualStep& store : stores) {
      const bool early = at_once_ && store.step.kind == Kind::kStoreHalf;
      const std::ptrdiff_t made = early ? writtenAt(store.args[0]) : -1;
      steps_.insert(made < 0 ? steps_.end() : steps_.begin() + made + 1, store);
    }
  }

  std::int32_t newValue() {
    num_values_ += 1;
    place_.emplace_back();
    placed_.push_back(true);
    raw_.push_back(false);
    is_uniform_.push_back(false);
    is_constant_.push_back(false);
    return static_cast<std::int32_t>(num_values_ - 1);
  }

  /// Copies an input in storage form: a half's two bytes as they are, so that no NaN changes.
  std::int32_t copiedInput(std::int32_t v, ElementType type) {
    if (index(v) < copied_.size() && copied_[index(v)] >= 0) return copied_[index(v)];
    copied_.resize(num_inputs_, -1);
    VirtualStep d;
    d.step.kind = Kind::kCopy;
    d.step.bytes = static_cast<std::uint8_t>(sizeOf(type));
    d.step.args[0] = {static_cast<std::uint32_t>(v), 0};
    d.out = copied_[index(v)] = newValue();
    steps_.push_back(d);
    return d.out;
  }

  /// A uniform value in storage form: a half as its two bytes.
  std::int32_t uniformOutput(std::int32_t v, ElementType type, bool input) {
    if (type != ElementType::kHalf) return v;
    const std::int32_t stored = newValue();
    is_uniform_[index(stored)] = true;
    place_[index(stored)] = {static_cast<std::uint32_t>(v), 0};
    if (input) return stored;
    Step s;
    s.kind = Kind::kStoreHalf;
    s.args[0] = place_[index(v)];
    s.out = place_[index(stored)] = nextUniform();
    uniform_steps_.push_back(s);
    return stored;
  }

  bool inSlot(std::int32_t v) const {
    return !isScalar(v) && !(index(v) < num_inputs_ && raw_[index(v)]);
  }

  std::size_t blockBytes(std::int32_t v) const {
    if (index(v) >= num_inputs_ + program_.instructions().size()) return 8;
    return sizeOf(blockType(typeOf(v)));
  }

  void allocate(ExprPlan& plan) {
    const std::vector<bool> direct = writeDirectly();
    plan.apart = writtenBeforeRead(direct);
    std::vector<ValueTraits> traits(num_values_);
    for (std::size_t v = 0; v < num_values_; ++v) {
      const auto number = static_cast<std::int32_t>(v);
      traits[v].scalar = isScalar(number);
      traits[v].direct = direct[v];
      if (isProgramValue(v)) traits[v].type = typeOf(number);
      if (is_constant_[v] && isProgramValue(v)) traits[v].constant = constants_[v];
    }
    std::vector<bool> stays;
    const std::vector<VirtualChain> chains = findChains(steps_, traits, stays);
    std::size_t element = 4;
    for (std::size_t v = 0; v < num_values_; ++v)
      element = std::max(element, blockBytes(static_cast<std::int32_t>(v)));
    const std::size_t slot_bytes =
        static_cast<std::size_t>(ExprEvaluator::kBlock) * element + 2 * kLine;
    const std::size_t first_slot = roundUpToLine(uniform_at_);
    for (std::size_t v = 0; v < num_values_; ++v) has_slot_.push_back(!stays[v] && !direct[v]);
    assign(first_slot, slot_bytes);
    scratch_bytes_ = first_slot + num_slots_ * slot_bytes;
    if (scratch_bytes_ > (std::size_t{1} << 31))
      throw std::invalid_argument(
          "[ExprEvaluator] needs a program of at most 2 GiB of registers. "
          "Split the expression.");
    emit(chains, plan);
  }

  bool isProgramValue(std::size_t v) const {
    return v < num_inputs_ + program_.instructions().size();
  }

  /// Lets steps write their results directly to outputs, and drops the copies.
  std::vector<bool> writeDirectly() {
    std::ptrdiff_t last_raw_read = -1;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      if (!inputsRead(steps_[s]).empty()) last_raw_read = static_cast<std::ptrdiff_t>(s);
    }
    std::vector<bool> direct(num_values_, false);
    for (auto& d : steps_) {
      if (d.output < 0 || d.step.kind != Kind::kCopy) continue;
      const std::int32_t v = d.args[0];
      if (!inSlot(v) || direct[index(v)]) continue;
      if (!at_once_ && writtenAt(v) < last_raw_read) continue;
      direct[index(v)] = true;
      place_[index(v)] = outputPlace(d.output);
      d.output = -2;  // nothing left to do
    }
    std::erase_if(steps_, [](const VirtualStep& d) { return d.output == -2; });
    return direct;
  }

  /// Numbers of the inputs whose memory a step reads; uniform ones are not overwritten.
  std::vector<std::uint32_t> inputsRead(const VirtualStep& d) const {
    std::vector<std::uint32_t> inputs;
    if (d.out >= 0 && d.args[0] < 0 && d.step.kind != Kind::kRandom)
      inputs.push_back(d.step.args[0].base);
    for (const std::int32_t a : d.args) {
      if (a >= 0 && !isScalar(a) && !inSlot(a)) inputs.push_back(static_cast<std::uint32_t>(a));
    }
    return inputs;
  }

  /// The pairs of an output and an input that is read after the output is written.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> writtenBeforeRead(
      const std::vector<bool>& direct) const {
    std::vector<std::uint32_t> written;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (const VirtualStep& d : steps_) {
      for (const std::uint32_t input : inputsRead(d)) {
        for (const std::uint32_t output : written) pairs.emplace_back(output, input);
      }
      if (d.output >= 0)
        written.push_back(static_cast<std::uint32_t>(d.output));
      else if (d.out >= 0 && direct[index(d.out)])
        written.push_back(place_[index(d.out)].base - static_cast<std::uint32_t>(num_inputs_));
    }
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    return pairs;
  }

  Place outputPlace(std::int32_t output) const {
    return {static_cast<std::uint32_t>(num_inputs_) + static_cast<std::uint32_t>(output), 0};
  }

  std::ptrdiff_t writtenAt(std::int32_t v) const {
    for (std::size_t s = steps_.size(); s-- > 0;)
      if (steps_[s].out == v) return static_cast<std::ptrdiff_t>(s);
    return -1;
  }

  /// Gives values their slots. Only values of the same element size share a slot: within a chain, a
  /// strip of one must not overwrite elements of the other that are yet to be read.
  void assign(std::size_t first_slot, std::size_t slot_bytes) {
    std::vector<std::ptrdiff_t> last_use(num_values_, -1);
    for (std::size_t s = 0; s < steps_.size(); ++s)
      for (auto a : steps_[s].args)
        if (a >= 0) last_use[index(a)] = static_cast<std::ptrdiff_t>(s);
    std::vector<std::size_t> free[9];  // by bytes of an element
    std::vector<std::size_t> slot(num_values_, 0);
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      auto& d = steps_[s];
      for (int a = 0; a < 3; ++a) {
        const std::int32_t v = d.args[a];
        if (v < 0) continue;
        d.step.args[a] = place_[index(v)];
        const bool first = std::find(d.args, d.args + a, v) == d.args + a;
        if (!first || !inSlot(v) || !has_slot_[index(v)]) continue;
        if (last_use[index(v)] == static_cast<std::ptrdiff_t>(s))
          free[blockBytes(v)].push_back(slot[index(v)]);
      }
      if (d.out < 0) {
        if (d.output >= 0) d.step.out = outputPlace(d.output);
        continue;
      }
      if (has_slot_[index(d.out)]) {
        auto& candidates = free[blockBytes(d.out)];
        if (candidates.empty()) candidates.push_back(num_slots_++);
        slot[index(d.out)] = candidates.back();
        candidates.pop_back();
        place_[index(d.out)] = {
            base_, static_cast<std::uint32_t>(first_slot + slot[index(d.out)] * slot_bytes)};
      }
      d.step.out = place_[index(d.out)];
    }
  }

  void emit(const std::vector<VirtualChain>& chains, ExprPlan& plan) {
    auto chain = chains.begin();
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      if (chain == chains.end() || s < chain->begin) {
        plan.steps.push_back(steps_[s].step);
        continue;
      }
      Step step;
      step.kind = Kind::kChain;
      step.immediate = static_cast<std::int64_t>(plan.chains.size());
      plan.steps.push_back(step);
      plan.chains.push_back(resolved(*chain));
      s = chain->end - 1;
      ++chain;
    }
  }

  Chain resolved(const VirtualChain& virtual_chain) const {
    Chain chain;
    chain.code = virtual_chain.code;
    chain.lanes = code::stripLanes();
    for (const auto& m : virtual_chain.memory) {
      Chain::Memory memory;
      memory.place = m.value >= 0    ? place_[index(m.value)]
                     : m.output >= 0 ? outputPlace(m.output)
                                     : m.place;
      chain.steps.push_back(m.value >= 0 && isScalar(m.value) ? 0 : m.bytes);
      memory.external = !padded_ && chain.steps.back() != 0 && memory.place.base < base_;
      memory.written = m.written;
      chain.has_external |= memory.external;
      chain.memory.push_back(memory);
    }
    return chain;
  }

  const ExprProgram& program_;
  bool padded_;
  bool at_once_;
  std::size_t num_inputs_;
  std::size_t num_values_;
  std::vector<bool> is_uniform_, is_constant_;
  std::vector<bool> raw_;             ///< an input still in its storage form
  std::vector<bool> placed_;          ///< operands may name it
  std::vector<std::int32_t> source_;  ///< another name of the same value
  std::vector<std::int32_t> copied_;
  std::vector<bool> has_slot_;
  std::vector<Place> place_;
  std::vector<VirtualStep> steps_;
  std::vector<Step> uniform_steps_;
  std::uint64_t* constants_ = nullptr;
  std::uint32_t base_ = 0;
  std::uint32_t constant_base_ = 0;
  std::size_t uniform_at_ = 0;
  std::size_t num_slots_ = 0;
  std::size_t scratch_bytes_ = 0;
};
}  // namespace

ExprPlan makePlan(const ExprProgram& program, const std::vector<bool>& uniform, bool padded,
                  Writes writes) {
  ExprPlan plan;
  Planner(withRotations(program), uniform, padded, writes).plan(plan);
  return plan;
}

}  // namespace ipujax::engine::expr
