#include "engine/expr/ExprProgram.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <unordered_map>

#include "engine/Half.hpp"
#include "engine/simd/MapOps.hpp"

namespace ipujax::engine::expr {

namespace {
constexpr std::int64_t kFormat = 1;

[[noreturn]] void fail(const std::string& text) { throw std::invalid_argument(text); }

bool isFloating(ElementType t) {
  return t == ElementType::kFloat || t == ElementType::kHalf || t == ElementType::kDouble;
}

/// bool has no arithmetic: sums and maxima are "or", products and minima "and" (as in XLA).
Op forBool(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kMaximum:
    case Op::kBitwiseOr:
      return Op::kLogicalOr;
    case Op::kMultiply:
    case Op::kMinimum:
    case Op::kBitwiseAnd:
      return Op::kLogicalAnd;
    case Op::kBitwiseNot:
      return Op::kLogicalNot;
    default:
      return op;
  }
}

/// Converts as kCast does: truncates, saturates, maps NaN to 0.
template <class T>
T saturated(double value) {
  constexpr auto kLeast = std::numeric_limits<T>::min();
  constexpr auto kMost = std::numeric_limits<T>::max();
  if (!(value > static_cast<double>(kLeast))) return std::isnan(value) ? T(0) : kLeast;
  // Twice a power of two: exact, which kMost as a double need not be.
  if (value >= 2.0 * static_cast<double>(static_cast<T>(kMost / 2 + 1))) return kMost;
  return static_cast<T>(value);
}

std::int64_t toBits(ElementType type, double value) {
  switch (type) {
    case ElementType::kBool:
      return value != 0;
    case ElementType::kHalf:
      return floatToHalf(static_cast<float>(value));
    case ElementType::kFloat:
      return __builtin_bit_cast(std::uint32_t, static_cast<float>(value));
    case ElementType::kDouble:
      return __builtin_bit_cast(std::int64_t, value);
    default:
      return withInteger(
          type, [&]<class T>(T) { return static_cast<std::int64_t>(saturated<T>(value)); });
  }
}

/// Checks the operand types and returns the result's.
ElementType resultType(Op op, std::span<const ElementType> types) {
  const auto complain = [&](const char* needs) {
    std::string got;
    for (auto t : types) got += std::string(got.empty() ? "" : ", ") + engine::nameOf(t);
    fail(std::string("[expr ") + nameOf(op) + "] needs " + needs + "; got " + got +
         ". Cast the operands.");
  };
  const ElementType first = types[0];
  switch (op) {
    case Op::kFromBFloat16:
      if (first != ElementType::kUInt16) complain("unsigned short");
      return ElementType::kFloat;
    case Op::kToBFloat16:
      if (first != ElementType::kFloat) complain("float");
      return ElementType::kUInt16;
    case Op::kSelect:
      if (types[1] != first || types[2] != ElementType::kBool)
        complain("two values of one type and a bool predicate");
      return first;
    default:
      break;
  }
  for (auto t : types)
    if (t != first) complain("operands of one type");
  if (op == Op::kRoundToBFloat16 && first != ElementType::kFloat) complain("float");
  // These predicates need floating-point operands; other operations need a loop for the type.
  const bool floats_only = op == Op::kIsFinite || op == Op::kIsInf || op == Op::kIsNan;
  if ((floats_only && !isFloating(first)) ||
      !simd::findMap({op, first, has(op, kGivesBool) ? ElementType::kBool : first, 0}))
    complain("operand types that have the operation");
  return has(op, kGivesBool) ? ElementType::kBool : first;
}

/// The type that ExprBuilder would have given the instruction; throws if it would not have made the
/// instruction.
ElementType typeByRules(const Instruction& i, std::span<const ElementType> types) {
  const auto need = [&](bool good) {
    if (!good)
      fail(std::string("[ExprProgram] needs instructions that exist; got ") + nameOf(i.op) +
           " that is none. The executable is damaged: compile again.");
  };
  switch (i.op) {
    case Op::kConstant:
      return i.type;
    case Op::kRandomBits:
      return ElementType::kUInt32;
    case Op::kCast:
      need(simd::blockType(types[0]) == simd::blockType(i.type) ||
           simd::findMap({i.op, types[0], i.type, 0}));
      return i.type;
    case Op::kBitcast:
      need(sizeOf(types[0]) == sizeOf(i.type));
      return i.type;
    case Op::kReducePrecision:
      need(isFloating(types[0]) && i.immediate >= 256 && i.immediate < 65536);
      return types[0];
    default:
      return resultType(i.op, types);
  }
}

std::uint64_t hashOf(const Instruction& i) {
  std::uint64_t h = static_cast<std::uint64_t>(i.op) * 31 + static_cast<std::uint64_t>(i.type);
  for (auto a : i.args) h = (h ^ static_cast<std::uint64_t>(a + 7)) * 0x9e3779b97f4a7c15ull;
  return (h ^ static_cast<std::uint64_t>(i.immediate)) * 0x9e3779b97f4a7c15ull >> 7;
}
struct InstructionHash {
  std::size_t operator()(const Instruction& i) const { return hashOf(i); }
};
}  // namespace

// ---- ExprProgram -------------------------------------------------------------------------------

ElementType ExprProgram::typeOf(std::int32_t value) const {
  const auto v = static_cast<std::size_t>(value);
  return v < inputs_.size() ? inputs_[v] : instructions_[v - inputs_.size()].type;
}

std::vector<ElementType> ExprProgram::outputTypes() const {
  std::vector<ElementType> types;
  types.reserve(outputs_.size());
  for (auto v : outputs_) types.push_back(typeOf(v));
  return types;
}

bool ExprProgram::usesInput(std::size_t input) const {
  const auto v = static_cast<std::int32_t>(input);
  if (std::find(outputs_.begin(), outputs_.end(), v) != outputs_.end()) return true;
  return std::any_of(instructions_.begin(), instructions_.end(), [&](const Instruction& i) {
    return std::find(i.args.begin(), i.args.end(), v) != i.args.end();
  });
}

bool ExprProgram::isBinary(Op op) const {
  if (inputs_.size() != 2 || outputs_.size() != 1 || instructions_.size() != 1 ||
      outputs_[0] != 2 || instructions_[0].op != op)
    return false;
  const auto& args = instructions_[0].args;
  return (args[0] == 0 && args[1] == 1) || (has(op, kCommutative) && args[0] == 1 && args[1] == 0);
}

bool ExprProgram::isInput(std::size_t input) const {
  return outputs_.size() == 1 && outputs_[0] == static_cast<std::int32_t>(input);
}

ExprProgram ExprProgram::withoutUnusedInputs(std::vector<std::size_t>& kept) const {
  ExprProgram p;
  kept.clear();
  std::vector<std::int32_t> renamed(inputs_.size() + instructions_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!usesInput(i)) continue;
    renamed[i] = static_cast<std::int32_t>(kept.size());
    kept.push_back(i);
    p.inputs_.push_back(inputs_[i]);
  }
  const auto dropped = static_cast<std::int32_t>(inputs_.size() - kept.size());
  for (std::size_t k = inputs_.size(); k < renamed.size(); ++k)
    renamed[k] = static_cast<std::int32_t>(k) - dropped;
  p.instructions_ = instructions_;
  for (auto& i : p.instructions_)
    for (auto& a : i.args)
      if (a >= 0) a = renamed[static_cast<std::size_t>(a)];
  for (auto v : outputs_) p.outputs_.push_back(renamed[static_cast<std::size_t>(v)]);
  return p;
}

bool ExprProgram::isRandom() const {
  return std::any_of(instructions_.begin(), instructions_.end(),
                     [](const Instruction& i) { return i.op == Op::kRandomBits; });
}

Attributes::Integers ExprProgram::toIntegers() const {
  Attributes::Integers out{kFormat, static_cast<std::int64_t>(inputs_.size()),
                           static_cast<std::int64_t>(instructions_.size()),
                           static_cast<std::int64_t>(outputs_.size())};
  for (auto t : inputs_) out.push_back(static_cast<std::int64_t>(t));
  for (const auto& i : instructions_) {
    out.push_back(static_cast<std::int64_t>(i.op) * 256 + static_cast<std::int64_t>(i.type));
    for (int a = 0; a < numOperands(i.op); ++a) out.push_back(i.args[static_cast<std::size_t>(a)]);
    if (has(i.op, kHasImmediate)) out.push_back(i.immediate);
  }
  out.insert(out.end(), outputs_.begin(), outputs_.end());
  return out;
}

ExprProgram ExprProgram::fromIntegers(const Attributes::Integers& integers) {
  std::size_t at = 0;
  const auto next = [&](std::int64_t below) {
    if (at >= integers.size() || integers[at] < 0 || integers[at] >= below)
      fail("[ExprProgram] needs a program of format 1; got " + std::to_string(integers.size()) +
           " integers that are not. The executable is damaged: compile it again.");
    return integers[at++];
  };
  constexpr std::int64_t kMany = std::int64_t{1} << 16;  // of what plans walk twice
  constexpr auto kTypes = static_cast<std::int64_t>(ElementType::kDouble) + 1;
  if (next(kFormat + 1) != kFormat) fail("[ExprProgram] needs format 1. Compile again.");
  const std::int64_t num_inputs = next(kMany);
  const std::int64_t num_instructions = next(kMany);
  const std::int64_t num_outputs = next(kMany);
  ExprProgram p;
  for (std::int64_t k = 0; k < num_inputs; ++k)
    p.inputs_.push_back(static_cast<ElementType>(next(kTypes)));
  for (std::int64_t k = 0; k < num_instructions; ++k) {
    Instruction i;
    const std::int64_t head = next(kOpCount * 256);
    i.op = static_cast<Op>(head / 256);
    if (head % 256 >= kTypes) fail("[ExprProgram] needs a known type. Compile again.");
    i.type = static_cast<ElementType>(head % 256);
    for (int a = 0; a < numOperands(i.op); ++a)
      i.args[static_cast<std::size_t>(a)] = static_cast<std::int32_t>(next(num_inputs + k));
    if (has(i.op, kHasImmediate)) {
      if (at >= integers.size()) next(0);
      i.immediate = integers[at++];
    }
    std::array<ElementType, 3> types{};
    const auto operands = static_cast<std::size_t>(numOperands(i.op));
    for (std::size_t a = 0; a < operands; ++a) types[a] = p.typeOf(i.args[a]);
    if (typeByRules(i, {types.data(), operands}) != i.type)
      fail("[ExprProgram] needs results of the types that operations give. Compile again.");
    p.instructions_.push_back(i);
  }
  for (std::int64_t k = 0; k < num_outputs; ++k)
    p.outputs_.push_back(static_cast<std::int32_t>(next(num_inputs + num_instructions)));
  if (at != integers.size()) fail("[ExprProgram] needs nothing behind its end. Compile again.");
  return p;
}

std::string ExprProgram::toString() const {
  std::ostringstream os;
  for (std::size_t k = 0; k < inputs_.size(); ++k)
    os << "%" << k << " = input " << engine::nameOf(inputs_[k]) << "\n";
  for (std::size_t k = 0; k < instructions_.size(); ++k) {
    const auto& i = instructions_[k];
    os << "%" << inputs_.size() + k << " = " << nameOf(i.op) << " " << engine::nameOf(i.type);
    for (int a = 0; a < numOperands(i.op); ++a) os << " %" << i.args[static_cast<std::size_t>(a)];
    if (has(i.op, kHasImmediate)) os << " " << i.immediate;
    os << "\n";
  }
  os << "return";
  for (auto v : outputs_) os << " %" << v;
  os << "\n";
  return os.str();
}

// ---- ExprBuilder -------------------------------------------------------------------------------

struct ExprBuilder::Table {
  std::unordered_map<Instruction, std::int32_t, InstructionHash> known;
};

ExprBuilder::ExprBuilder(std::vector<ElementType> inputTypes) : table_(std::make_unique<Table>()) {
  program_.inputs_ = std::move(inputTypes);
}
ExprBuilder::~ExprBuilder() = default;

ElementType ExprBuilder::typeOf(std::int32_t value) const { return program_.typeOf(value); }

std::int32_t ExprBuilder::add(const Instruction& instruction) {
  const auto value =
      static_cast<std::int32_t>(program_.inputs_.size() + program_.instructions_.size());
  const auto [it, inserted] = table_->known.emplace(instruction, value);
  if (inserted) program_.instructions_.push_back(instruction);
  return it->second;
}

std::int32_t ExprBuilder::input(std::size_t index) const {
  if (index >= program_.inputs_.size())
    fail("[ExprBuilder::input] needs an index below " + std::to_string(program_.inputs_.size()) +
         "; got " + std::to_string(index) + ". Pass one tensor for each placeholder.");
  return static_cast<std::int32_t>(index);
}

std::int32_t ExprBuilder::constant(ElementType type, std::int64_t bits) {
  Instruction i;
  i.type = type;
  const auto size = sizeOf(type);
  if (size < 8) {  // one form for equal values
    const auto mask = (std::uint64_t{1} << (size * 8)) - 1;
    i.immediate = static_cast<std::int64_t>(static_cast<std::uint64_t>(bits) & mask);
  } else {
    i.immediate = bits;
  }
  if (type == ElementType::kBool) i.immediate = i.immediate != 0;
  return add(i);
}

std::int32_t ExprBuilder::constantFrom(ElementType type, double value) {
  return constant(type, toBits(type, value));
}

std::int32_t ExprBuilder::cast(std::int32_t value, ElementType type) {
  if (typeOf(value) == type) return value;
  return add({Op::kCast, type, {value, -1, -1}, 0});
}

std::int32_t ExprBuilder::bitcast(std::int32_t value, ElementType type) {
  const auto from = typeOf(value);
  if (sizeOf(from) != sizeOf(type))
    fail(std::string("[ExprBuilder::bitcast] needs types of equal size; got ") +
         engine::nameOf(from) + " and " + engine::nameOf(type) + ". Reshape first.");
  if (from == type) return value;
  return add({Op::kBitcast, type, {value, -1, -1}, 0});
}

std::int32_t ExprBuilder::reducePrecision(std::int32_t value, int exponentBits, int mantissaBits) {
  if (!isFloating(typeOf(value)) || exponentBits < 1 || mantissaBits < 0 || exponentBits > 255 ||
      mantissaBits > 255)
    fail("[ExprBuilder::reducePrecision] needs float or half and at least one exponent bit; got " +
         std::string(engine::nameOf(typeOf(value))) + ", " + std::to_string(exponentBits) +
         " and " + std::to_string(mantissaBits) + " bits.");
  return add(
      {Op::kReducePrecision, typeOf(value), {value, -1, -1}, exponentBits * 256 + mantissaBits});
}

std::int32_t ExprBuilder::randomBits(std::int64_t stream) {
  return add({Op::kRandomBits, ElementType::kUInt32, {-1, -1, -1}, stream});
}

void ExprBuilder::setStream(std::int32_t value, std::int64_t stream) {
  const auto num_inputs = static_cast<std::int32_t>(program_.inputs_.size());
  if (value < num_inputs) return;
  Instruction& i = program_.instructions_[static_cast<std::size_t>(value - num_inputs)];
  if (i.type == ElementType::kHalf && !has(i.op, kHasImmediate)) i.immediate = stream;
}

std::int32_t ExprBuilder::apply(Op op, std::span<const std::int32_t> args) {
  if (has(op, kHasImmediate) || op == Op::kCast || op == Op::kBitcast || op >= Op::kCount ||
      args.size() != static_cast<std::size_t>(numOperands(op)))
    fail(std::string("[ExprBuilder::apply] needs an operation with as many operands as it takes; "
                     "got ") +
         nameOf(op) + " with " + std::to_string(args.size()) + ".");
  std::array<ElementType, 3> types{};
  Instruction i;
  for (std::size_t k = 0; k < args.size(); ++k) {
    types[k] = typeOf(args[k]);
    i.args[k] = args[k];
  }
  i.op = types[0] == ElementType::kBool ? forBool(op) : op;
  if (has(i.op, kCommutative) && i.args[0] > i.args[1] && i.op != Op::kMaximum &&
      i.op != Op::kMinimum)  // max and min keep the order of equal zeros
    std::swap(i.args[0], i.args[1]);
  i.type = resultType(i.op, std::span<const ElementType>(types.data(), args.size()));
  return add(i);
}

void ExprBuilder::output(std::int32_t value) { program_.outputs_.push_back(value); }

ExprProgram ExprBuilder::build() {
  const auto num_inputs = static_cast<std::int32_t>(program_.inputs_.size());
  const auto num_values = static_cast<std::size_t>(num_inputs) + program_.instructions_.size();
  std::vector<char> live(num_values, 0);
  for (auto v : program_.outputs_) live[static_cast<std::size_t>(v)] = 1;
  for (std::size_t k = program_.instructions_.size(); k-- > 0;) {
    if (!live[static_cast<std::size_t>(num_inputs) + k]) continue;
    for (auto a : program_.instructions_[k].args)
      if (a >= 0) live[static_cast<std::size_t>(a)] = 1;
  }
  std::vector<std::int32_t> renamed(num_values, -1);
  for (std::int32_t v = 0; v < num_inputs; ++v) renamed[static_cast<std::size_t>(v)] = v;
  ExprProgram p;
  p.inputs_ = program_.inputs_;
  for (std::size_t k = 0; k < program_.instructions_.size(); ++k) {
    const auto v = static_cast<std::size_t>(num_inputs) + k;
    if (!live[v]) continue;
    Instruction i = program_.instructions_[k];
    for (auto& a : i.args)
      if (a >= 0) a = renamed[static_cast<std::size_t>(a)];
    renamed[v] = num_inputs + static_cast<std::int32_t>(p.instructions_.size());
    p.instructions_.push_back(i);
  }
  for (auto v : program_.outputs_) p.outputs_.push_back(renamed[static_cast<std::size_t>(v)]);
  return p;
}

}  // namespace ipujax::engine::expr
