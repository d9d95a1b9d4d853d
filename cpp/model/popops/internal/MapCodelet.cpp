#include "popops/internal/MapCodelet.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "engine/Half.hpp"
#include "popops/internal/ExprCompile.hpp"
#include "popops/internal/Map.hpp"
#include "poputil/exceptions.hpp"

namespace popops::internal {
namespace {

using ipujax::engine::ElementType;
using ipujax::engine::expr::ExprProgram;
using ipujax::engine::expr::Instruction;
using ipujax::engine::expr::Op;

constexpr const char* kHead =
    "#include <cmath>\n#include <cstring>\n#include <limits>\n#include <poplar/HalfFloat.hpp>\n"
    "#include <poplar/Vertex.hpp>\n#include <type_traits>\n\n";

[[noreturn]] void fail(const std::string& needs, const std::string& got,
                       const std::string& advice) {
  throw poputil::poplibs_error("[popops::outputGeneratedCodelet] needs " + needs + "; got " + got +
                               ". " + advice);
}

struct TypeName {
  const char *name, *suffix;  ///< in C++, and in names of functions
};

TypeName cppNameOf(ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return {"bool", "bool"};
    case ElementType::kInt8:
      return {"signed char", "int8"};
    case ElementType::kUInt8:
      return {"unsigned char", "uint8"};
    case ElementType::kInt16:
      return {"short", "int16"};
    case ElementType::kUInt16:
      return {"unsigned short", "uint16"};
    case ElementType::kInt32:
      return {"int", "int32"};
    case ElementType::kUInt32:
      return {"unsigned", "uint32"};
    case ElementType::kInt64:
      return {"long long", "int64"};
    case ElementType::kUInt64:
      return {"unsigned long long", "uint64"};
    case ElementType::kHalf:
      return {"half", "half"};
    case ElementType::kFloat:
      return {"float", "float"};
    case ElementType::kDouble:
      break;
  }
  fail("types that codelets have", "double", "Cast to FLOAT.");
}

bool isReal(ElementType type) { return type == ElementType::kFloat || type == ElementType::kHalf; }

std::string realConstant(float value) {
  if (std::isnan(value)) return "std::numeric_limits<float>::quiet_NaN()";
  if (std::isinf(value))
    return std::string(value < 0 ? "-" : "") + "std::numeric_limits<float>::infinity()";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", static_cast<double>(value));
  std::string made = text.data();
  if (made.find_first_of(".e") == std::string::npos) made += ".0";
  return made + "f";
}

std::string constantText(const Instruction& i) {
  const auto bits = static_cast<std::uint32_t>(i.immediate);
  if (i.type == ElementType::kBool) return i.immediate ? "true" : "false";
  if (i.type == ElementType::kFloat) return realConstant(__builtin_bit_cast(float, bits));
  if (i.type == ElementType::kHalf)
    return "half(" + realConstant(ipujax::engine::halfToFloat(static_cast<std::uint16_t>(bits))) +
           ")";
  // Bits are written unsigned; the cast converts them to the signed value.
  return std::string("static_cast<") + cppNameOf(i.type).name + ">(" +
         std::to_string(static_cast<std::uint64_t>(i.immediate)) + "ull)";
}

/// Writes the functions of operations and the body of compute(), instruction by instruction.
class Writer {
 public:
  explicit Writer(const ExprProgram& program) : program_(program) {}

  std::string statements() {
    const auto inputs = static_cast<std::int32_t>(program_.numInputs());
    std::int32_t value = inputs;
    std::string body;
    for (const auto& i : program_.instructions())
      body += std::string("      const ") + cppNameOf(i.type).name + " " + nameOfValue(value++) +
              " = " + valueOf(i) + ";\n";
    return body;
  }
  std::string nameOfValue(std::int32_t value) const {
    const bool is_input = value < static_cast<std::int32_t>(program_.numInputs());
    return (is_input ? "x" : "v") + std::to_string(value + 1);
  }
  std::string functions() const {
    std::string all;
    for (const auto& [name, text] : functions_) all += text;
    return all;
  }

 private:
  std::string argument(const Instruction& i, std::size_t k) const { return nameOfValue(i.args[k]); }

  std::string valueOf(const Instruction& i) {
    switch (i.op) {
      case Op::kConstant:
        return constantText(i);
      case Op::kCast:
        return castOf(i);
      case Op::kBitcast:
        return std::string("sameBits<") + cppNameOf(i.type).name + ">(" + argument(i, 0) + ")";
      case Op::kSelect:
        return argument(i, 2) + " ? " + argument(i, 0) + " : " + argument(i, 1);
      default:
        return callOf(i);
    }
  }

  std::string castOf(const Instruction& i) const {
    const auto from = program_.typeOf(i.args[0]);
    std::string value = argument(i, 0);
    if (from == ElementType::kHalf) value = "float(" + value + ")";
    if (i.type == ElementType::kBool) return value + " != 0";
    if (i.type == ElementType::kHalf) return "half(float(" + value + "))";
    if (isReal(from) && !isReal(i.type))
      return std::string("toInteger<") + cppNameOf(i.type).name + ">(" + value + ")";
    return std::string("static_cast<") + cppNameOf(i.type).name + ">(" + value + ")";
  }

  /// A call of the operation's function; the first call also defines the function.
  std::string callOf(const Instruction& i) {
    const auto operands = static_cast<std::size_t>(ipujax::engine::expr::numOperands(i.op));
    const auto type = operands ? program_.typeOf(i.args[0]) : i.type;
    const std::string text = codeletText(i.op, type);
    if (text.empty() || operands == 0)
      fail("operations that codelets can hold", ipujax::engine::expr::nameOf(i.op),
           "Write it in operations of popops.");
    const bool half = type == ElementType::kHalf;
    const std::string name = std::string(ipujax::engine::expr::nameOf(i.op)) + "_" +
                             cppNameOf(half ? ElementType::kFloat : type).suffix;
    define(name, text, half ? ElementType::kFloat : type,
           half && i.type == ElementType::kHalf ? ElementType::kFloat : i.type, operands);
    std::string arguments;
    for (std::size_t k = 0; k < operands; ++k) {
      const std::string value = argument(i, k);
      arguments += (k ? ", " : "") + (half ? "float(" + value + ")" : value);
    }
    const std::string call = name + "(" + arguments + ")";
    return i.type == ElementType::kHalf ? "half(" + call + ")" : call;
  }

  void define(const std::string& name, const std::string& text, ElementType type,
              ElementType result, std::size_t operands) {
    const std::string of = cppNameOf(type).name;
    std::string parameters;
    for (std::size_t k = 0; k < operands; ++k)
      parameters += (k ? ", " : "") + of + " " + static_cast<char>('a' + k);
    std::string body;
    if (text.find("T") != std::string::npos) body += "  using T = " + of + ";\n";
    if (text.find("U") != std::string::npos)
      body += "  using U = std::make_unsigned_t<" + of + ">;\n";
    functions_[name] = std::string("inline ") + cppNameOf(result).name + " " + name + "(" +
                       parameters + ") {\n" + body + "  return static_cast<" +
                       cppNameOf(result).name + ">(" + text + ");\n}\n";
  }

  const ExprProgram& program_;
  std::map<std::string, std::string> functions_;  ///< by name, so that texts are reproducible
};

std::string hexOf(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

}  // namespace

std::string codeletOf(const popops::expr::Expr& expr, const std::vector<poplar::Tensor>& ts) {
  const auto shape = broadcastShape(ts);
  const bool many = std::ranges::any_of(shape, [](std::size_t size) { return size != 1; });
  std::vector<poplar::Type> types;
  for (const auto& t : ts) types.push_back(t.elementType());
  const ExprProgram program = compileExpr({expr}, types);
  Writer writer(program);
  const std::string statements = writer.statements();
  std::string fields;
  std::string loads;
  for (std::size_t k = 0; k < ts.size(); ++k) {
    if (!program.usesInput(k)) continue;
    const std::string type = cppNameOf(program.inputTypes()[k]).name;
    const std::string field = "in" + std::to_string(k + 1);
    const bool scalar = many && ts[k].numElements() == 1;
    fields += scalar ? "  poplar::Input<" + type + "> " + field + ";\n"
                     : "  poplar::Input<poplar::Vector<" + type + ">> " + field + ";\n";
    loads += "      const " + type + " " + writer.nameOfValue(static_cast<std::int32_t>(k)) +
             " = " + (scalar ? "*" + field : field + "[i]") + ";\n";
  }
  const std::int32_t result = program.outputs().front();
  fields += std::string("  poplar::Output<poplar::Vector<") +
            cppNameOf(program.typeOf(result)).name + ">> out;\n";
  const std::string functions = writer.functions();
  const std::string id = hexOf(std::hash<std::string>{}(functions + fields + loads + statements));
  // Sources that are compiled together may have different functions of the same name.
  return kHead + ("namespace popops {\nnamespace map {\nnamespace functions_" + id + " {\n") +
         codeletFunctions(functions + statements) + functions + "}\n\nclass Map_" + id +
         " : public poplar::Vertex {\n public:\n" + fields +
         "\n  bool compute() {\n    using namespace functions_" + id +
         ";\n    const unsigned size = out.size();\n"
         "    for (unsigned i = 0; i < size; ++i) {\n" +
         loads + statements + "      out[i] = " + writer.nameOfValue(result) +
         ";\n    }\n    return true;\n  }\n};\n\n}\n}\n";
}

}  // namespace popops::internal
