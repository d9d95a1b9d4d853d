#include "engine/build/VertexTypes.hpp"

#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "engine/Half.hpp"
#include "engine/Reducer.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/move/Edges.hpp"

namespace ipujax::engine::build {
namespace {

using expr::ExprProgram;
using expr::Instruction;
using expr::Op;

/// The type as C++ spells it, for names of vertex templates.
const char* spelled(ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return "bool";
    case ElementType::kInt8:
      return "signed char";
    case ElementType::kUInt8:
      return "unsigned char";
    case ElementType::kInt16:
      return "short";
    case ElementType::kUInt16:
      return "unsigned short";
    case ElementType::kInt32:
      return "int";
    case ElementType::kUInt32:
      return "unsigned int";
    case ElementType::kInt64:
      return "long long";
    case ElementType::kUInt64:
      return "unsigned long long";
    case ElementType::kHalf:
      return "half";
    case ElementType::kFloat:
      return "float";
    case ElementType::kDouble:
      return "double";
  }
  return "";
}

/// The enumerator of popops::expr for an operation; empty if it has none.
const char* enumeratorOf(Op op) {
  switch (op) {
#define UNARY(Name, name, traits, api, ...) api
#define BINARY(Name, name, traits, api, ...) api
#define TERNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) \
  case Op::k##Name:                    \
    return #TYPE;
#include "engine/ops/ElementwiseOps.def"
    default:
      return "";
  }
}

/// Name of the vertex of a program; equal programs have the same vertex.
std::string generatedName(const Attributes::Integers& program) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::int64_t word : program)
    hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
  return std::string("popops::map::Map_") + digits;
}

std::string singleName(const ExprProgram& program, const Instruction& work, bool in_place) {
  const ElementType operand = program.typeOf(work.args[0]);
  const std::string type = spelled(operand);
  if (work.op == Op::kCast) return "popops::Cast1D<" + type + "," + spelled(work.type) + ">";
  const std::string kind = enumeratorOf(work.op);
  if (kind.empty()) return {};
  const std::string ending = in_place ? "InPlace<" : "<";
  switch (expr::numOperands(work.op)) {
    case 1:
      return "popops::UnaryOp1D" + ending + "popops::expr::UnaryOpType::" + kind + "," + type + ">";
    case 2:
      return "popops::BinaryOp1D" + ending + "popops::expr::BinaryOpType::" + kind + "," + type +
             ">";
    default:
      return std::string("popops::") + (work.op == Op::kSelect ? "Select" : "Clamp") + ending +
             type + ">";
  }
}

double valueOf(const Instruction& constant) {
  switch (constant.type) {
    case ElementType::kFloat:
      return std::bit_cast<float>(static_cast<std::uint32_t>(constant.immediate));
    case ElementType::kDouble:
      return std::bit_cast<double>(constant.immediate);
    case ElementType::kHalf:
      return halfToFloat(static_cast<std::uint16_t>(constant.immediate));
    case ElementType::kInt8:
      return static_cast<std::int8_t>(constant.immediate);
    case ElementType::kInt16:
      return static_cast<std::int16_t>(constant.immediate);
    case ElementType::kInt32:
      return static_cast<std::int32_t>(constant.immediate);
    default:
      return static_cast<double>(constant.immediate);
  }
}

/// Whether PopLibs generates a codelet for a single operation: a cheap one on single elements, with
/// a constant, if any, that is small (tests/popops/MapExprScalar.cpp tries 0, 0.5, -1, 2; and 4).
bool isGeneratedAlone(const ExprProgram& program, const Instruction& work, const StepDesc& step) {
  if (step.operands.back().numElements() != 1) return false;
  if (work.op != Op::kAdd && work.op != Op::kSubtract && work.op != Op::kMultiply &&
      work.op != Op::kEqual)
    return false;
  constexpr double kMost = 2;
  for (const std::int32_t arg : {work.args[0], work.args[1]}) {
    const Instruction* maker = program.makerOf(arg);
    if (maker == nullptr || maker->op != Op::kConstant) continue;
    if (std::abs(valueOf(*maker)) > kMost) return false;
  }
  return true;
}

/// A vertex of a library does one operation; for several, one codelet is generated.
std::string elementwiseName(const StepDesc& step) {
  const auto& integers = step.attributes.integers("expr");
  const auto program = ExprProgram::fromIntegers(integers);
  std::vector<const Instruction*> work;
  for (const auto& i : program.instructions())
    if (i.op != Op::kConstant && i.op != Op::kBitcast) work.push_back(&i);
  const bool generated = step.attributes.has(kGenerated);
  const std::string type = spelled(program.outputTypes().front());
  if (work.empty() && !generated && program.numInputs() == 0) return "popops::Fill<" + type + ">";
  if (work.size() != 1 || generated) return generatedName(integers);
  if (isGeneratedAlone(program, *work.front(), step)) return generatedName(integers);
  const auto& operands = step.operands;
  const bool in_place = operands.front().buffer == operands.back().buffer;
  const std::string name = singleName(program, *work.front(), in_place);
  return name.empty() ? generatedName(integers) : name;
}

/// "square_add" and "dynamic_slice" as "SquareAdd" and "DynamicSlice".
std::string camelCase(std::string_view text) {
  std::string name;
  bool begins_word = true;
  for (const char c : text) {
    if (c != '_') name += begins_word ? static_cast<char>(std::toupper(c)) : c;
    begins_word = c == '_';
  }
  return name;
}

std::vector<std::uint32_t> written(const StepDesc& step) {
  std::vector<std::uint32_t> operands;
  for (std::uint32_t i = 0; i < step.operands.size(); ++i)
    if (step.operands[i].access != Access::kRead) operands.push_back(i);
  return operands;
}

/// Vertices that combine partials, first where the elements are and then where the results are; or
/// only there, after one exchange.
std::vector<VertexType> reductionTypes(const StepDesc& step, double syncs) {
  const std::string in = spelled(step.operands[0].type);
  const std::string out = spelled(step.operands[1].type);
  const auto reducer = static_cast<reduction::Reducer>(step.attributes.integer("reducer"));
  const std::string op = camelCase(nameOf(reducer));
  const bool updates = step.attributes.has("update") && step.attributes.integer("update") != 0;
  const std::string last = std::string(",") + (updates ? "true>" : "false>");
  const std::string of = "<popops::Reduce" + op + "," + in + "," + out;
  std::vector<VertexType> types{{"popops::Reduce" + of + last, {1}}};
  constexpr double kOneStage = 2;  // an exchange, a compute set
  if (syncs > kOneStage + 0.5)
    types.insert(types.begin(), {"popops::ContinuousReduce" + of + ",false>", {0}});
  return types;
}

}  // namespace

std::vector<VertexType> vertexTypes(const StepDesc& step, double syncs) {
  if (step.cost.compute_cycles <= 0 || step.operands.empty()) return {};
  if (step.kernel == "engine.vertices") return {};  // the users' own
  if (step.kernel == "engine.copy" || step.kernel == kEdges)
    return {{"poplar_rt::DstStridedCopy", written(step)}};
  switch (roleOf(step)) {
    case KernelRole::kElementwise:
      return {{elementwiseName(step), written(step)}};
    case KernelRole::kReduction:
      return reductionTypes(step, syncs);
    default:
      break;
  }
  const auto dot = step.kernel.find('.');
  if (dot == std::string::npos) return {};
  return {
      {step.kernel.substr(0, dot) + "::" + camelCase(step.kernel.substr(dot + 1)), written(step)}};
}

}  // namespace ipujax::engine::build
