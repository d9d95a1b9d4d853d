#include "engine/loop/ScalarMap.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "engine/Half.hpp"
#include "engine/expr/ExprRotations.hpp"
#include "engine/expr/StripOps.hpp"
#include "engine/loop/Regions.hpp"
#include "engine/loop/ScalarControl.hpp"
#include "engine/simd/MapOps.hpp"

namespace ipujax::engine::loop {
namespace {

using expr::ExprProgram;
using expr::Instruction;
using expr::Op;
using simd::blockType;

constexpr std::size_t kMostInstructions = 256;
constexpr std::size_t kFewestInKernel = 4;  ///< elements for which functions' own loops are faster
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

std::size_t index(std::int32_t value) { return static_cast<std::size_t>(value); }

/// Facts of a step that hold for each of its elements.
struct MapStep {
  const ExprProgram& program;
  std::vector<std::vector<bool>> shares;  ///< by output, by input: the same memory

  std::size_t numInputs() const { return program.numInputs(); }
  const Instruction& maker(std::size_t value) const {
    return program.instructions()[value - numInputs()];
  }
};

/// Whether it is only another name of its operand. Halves are held as floats.
bool isAnotherName(const ExprProgram& program, const Instruction& i) {
  if (i.type == ElementType::kHalf) return false;
  if (i.op == Op::kCast) return blockType(i.type) == blockType(program.typeOf(i.args[0]));
  return i.op == Op::kBitcast;
}

/// Adds the code of one element; lives for one element.
class Element {
 public:
  Element(const MapStep& step, ScalarCode& code, std::vector<Place> operands)
      : step_(step), program_(step.program), code_(code), operands_(std::move(operands)) {
    const std::size_t num_values = step_.numInputs() + program_.instructions().size();
    source_.resize(num_values);
    for (std::size_t v = 0; v < num_values; ++v) source_[v] = v;
    for (std::size_t v = step_.numInputs(); v < num_values; ++v) {
      const Instruction& i = step_.maker(v);
      if (isAnotherName(program_, i)) source_[v] = source_[index(i.args[0])];
    }
    places_.resize(num_values);
    is_placed_.assign(num_values, false);
    findReads();
  }

  void add() {
    for (std::size_t v = step_.numInputs(); v < places_.size(); ++v)
      if (source_[v] == v) addValue(v);
    storeOutputs();
    code_.freeSlots();
  }

 private:
  bool isHalf(std::size_t value) const {
    return program_.typeOf(static_cast<std::int32_t>(value)) == ElementType::kHalf;
  }
  bool isInput(std::size_t value) const { return value < step_.numInputs(); }
  std::size_t outputValue(std::size_t output) const {
    return source_[index(program_.outputs()[output])];
  }
  /// Whether an output is an input in the same form: a half then keeps its bits.
  bool isMoved(std::size_t output) const {
    const std::size_t v = outputValue(output);
    return isInput(v) && isHalf(v) == (program_.outputTypes()[output] == ElementType::kHalf);
  }

  /// Finds the instruction that reads each input last; outputs are stored after all instructions.
  void findReads() {
    last_read_.assign(step_.numInputs(), 0);
    for (std::size_t v = step_.numInputs(); v < places_.size(); ++v)
      for (const auto a : step_.maker(v).args)
        if (a >= 0 && isInput(source_[index(a)])) last_read_[source_[index(a)]] = v;
    for (std::size_t j = 0; j < program_.numOutputs(); ++j)
      if (isInput(outputValue(j))) last_read_[outputValue(j)] = kNever;
  }

  /// The operand as an operation reads it.
  Place use(std::int32_t value) {
    const std::size_t v = source_[index(value)];
    if (is_placed_[v]) return places_[v];
    is_placed_[v] = true;  // an input
    if (!isHalf(v)) return places_[v] = operands_[v];
    places_[v] = code_.slot();
    code_.add(scalar::halfToFloat, {.a = operands_[v], .out = places_[v]});
    return places_[v];
  }

  void addValue(std::size_t v) {
    const Instruction& i = step_.maker(v);
    if (i.op == Op::kConstant) {
      places_[v] = constantOf(i);
    } else {
      ScalarCode::Operands o;
      Place* const args[] = {&o.a, &o.b, &o.c};
      for (std::size_t a = 0; a < 3; ++a)
        if (i.args[a] >= 0) *args[a] = use(i.args[a]);
      o.out = places_[v] = resultOf(v);
      addOperation(i, o);
    }
    is_placed_[v] = true;
  }

  Place constantOf(const Instruction& i) {
    if (i.type != ElementType::kHalf)
      return code_.constant(static_cast<std::uint64_t>(i.immediate));
    const float value = halfToFloat(static_cast<std::uint16_t>(i.immediate));
    return code_.constant(__builtin_bit_cast(std::uint32_t, value));
  }

  /// An output, if nothing later reads the memory that it overwrites; else a slot.
  Place resultOf(std::size_t v) {
    for (std::size_t j = 0; j < program_.numOutputs(); ++j) {
      if (outputValue(j) != v || isHalf(v) || isWanted(j, v)) continue;
      direct_.resize(program_.numOutputs());
      direct_[j] = true;
      return output(j);
    }
    return code_.slot();
  }
  /// Whether an input in the memory of output j is read after value v is computed.
  bool isWanted(std::size_t j, std::size_t v) const {
    for (std::size_t i = 0; i < step_.numInputs(); ++i)
      if (step_.shares[j][i] && last_read_[i] > v) return true;
    return false;
  }
  const Place& output(std::size_t j) const { return operands_[step_.numInputs() + j]; }

  void addOperation(const Instruction& i, ScalarCode::Operands o) {
    const ElementType from = program_.typeOf(i.args[0]);
    const bool is_half = i.type == ElementType::kHalf;
    if (i.op == Op::kCast && blockType(from) == blockType(i.type)) {  // of a float to a half
      code_.addCopy(o.a, o.out, sizeof(float));
    } else if (simd::findScalar({i.op, from, i.type})) {
      code_.addValue({i.op, from, i.type}, o);
    } else {
      const auto loop = reinterpret_cast<std::intptr_t>(simd::findMap({i.op, from, i.type}));
      o.c = code_.record({loop, i.immediate});
      code_.add(scalar::mapLoop, o);
    }
    if (is_half && !has(i.op, expr::kKeepsHalves)) code_.add(scalar::roundToHalf, {.out = o.out});
  }

  /// Reads outputs that are inputs first, as outputs may overwrite inputs.
  void storeOutputs() {
    const std::size_t num_outputs = program_.numOutputs();
    direct_.resize(num_outputs);
    std::vector<Place> from(num_outputs);
    for (std::size_t j = 0; j < num_outputs; ++j) {
      if (!isMoved(j)) {
        from[j] = use(program_.outputs()[j]);
        continue;
      }
      from[j] = operands_[outputValue(j)];
      if (num_outputs == 1) continue;
      const Place slot = code_.slot();
      code_.addCopy(from[j], slot, bytesOf(j));
      from[j] = slot;
    }
    for (std::size_t j = 0; j < num_outputs; ++j) {
      if (direct_[j]) continue;
      const bool rounds = program_.outputTypes()[j] == ElementType::kHalf && !isMoved(j);
      if (rounds)
        code_.add(scalar::floatToHalf, {.a = from[j], .out = output(j)});
      else
        code_.addCopy(from[j], output(j), bytesOf(j));
    }
  }
  std::size_t bytesOf(std::size_t j) const { return sizeOf(program_.outputTypes()[j]); }

  const MapStep& step_;
  const ExprProgram& program_;
  ScalarCode& code_;
  std::vector<Place> operands_;
  std::vector<std::size_t> source_;  ///< by value: the value it is another name of, or itself
  std::vector<Place> places_;
  std::vector<bool> is_placed_;
  std::vector<std::size_t> last_read_;  ///< by input: the value for which it is read
  std::vector<bool> direct_;            ///< outputs that were written directly
};

bool isKnown(const ExprProgram& program) {
  if (program.isRandom() || takesHalfApart(program)) return false;
  return std::ranges::all_of(program.instructions(), [&](const Instruction& i) {
    if (expr::numOperands(i.op) < 3) return true;
    return simd::findScalar({i.op, program.typeOf(i.args[0]), i.type}) != nullptr;
  });
}

/// Whether machine code would call functions for some of its operations, such as a sine.
bool callsFunctions(const ExprProgram& program) {
  return std::ranges::any_of(program.instructions(), [&](const Instruction& i) {
    const bool is_constant = i.op == Op::kConstant || i.op == Op::kBitcast;
    return !is_constant && !expr::hasStrip(i.op, program.typeOf(i.args[0]), i.type);
  });
}

}  // namespace

bool addMap(const Image& image, std::uint64_t number, ScalarCode& code) {
  const StepDesc& desc = image.steps[number];
  const auto program =
      expr::withRotations(ExprProgram::fromIntegers(desc.attributes.integers("expr")));
  const auto elements = static_cast<std::size_t>(desc.operands.back().numElements());
  const std::size_t most = elements == 1 ? kMostInstructions : kInstructionsOfStep;
  if (elements == 0 || elements > most || elements * program.instructions().size() > most)
    return false;
  if (!isKnown(program) || (elements >= kFewestInKernel && callsFunctions(program))) return false;
  MapStep step{program, {}};
  std::vector<Footprint> footprints;
  for (const OperandDesc& operand : desc.operands)
    footprints.push_back(footprintOf(image, operand));
  for (std::size_t j = step.numInputs(); j < desc.operands.size(); ++j) {
    auto& shares = step.shares.emplace_back();
    for (std::size_t i = 0; i < step.numInputs(); ++i) {
      shares.push_back(!areApart(footprints[i], footprints[j]));
      if (shares.back() && !isSame(footprints[i], footprints[j])) return false;
    }
  }
  std::vector<std::vector<std::int64_t>> places;
  for (const OperandDesc& operand : desc.operands)
    places.push_back(elementsOf(operand.shape, operand.strides));
  for (std::size_t e = 0; e < elements; ++e) {
    std::vector<Place> operands;
    for (std::size_t o = 0; o < desc.operands.size(); ++o) {
      const auto bytes = static_cast<std::int64_t>(sizeOf(desc.operands[o].type));
      operands.push_back(code.operand(number, o).at(places[o][e] * bytes));
    }
    Element(step, code, std::move(operands)).add();
  }
  return true;
}

}  // namespace ipujax::engine::loop
