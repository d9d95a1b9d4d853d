#include <array>
#include <cctype>
#include <string_view>

#include "popops/internal/MapCodelet.hpp"

namespace popops::internal {
namespace {

using ipujax::engine::ElementType;
using ipujax::engine::expr::Op;

const char* floatText(Op op) {
  switch (op) {
#define FUNCTIONS(Name, operands, functions) \
  case Op::k##Name:                          \
    functions break;
#define F(...) return #__VA_ARGS__;
#define ANGLE(fast, slow) return #slow;
#define LOOPS(choose) return #choose "(a, b)";
#include "engine/ops/ElementwiseOps.def"
    default:
      break;
  }
  return "";
}

const char* integerText(Op op) {
  switch (op) {
#define FUNCTIONS(Name, operands, functions) \
  case Op::k##Name:                          \
    functions break;
#define I(...) return #__VA_ARGS__;
#include "engine/ops/ElementwiseOps.def"
    default:
      break;
  }
  return "";
}

const char* boolText(Op op) {
  switch (op) {
#define FUNCTIONS(Name, operands, functions) \
  case Op::k##Name:                          \
    functions break;
#define B(...) return #__VA_ARGS__;
#include "engine/ops/ElementwiseOps.def"
    default:
      break;
  }
  return "";
}

struct Function {
  std::string_view name, definition;
};

/// The functions that the texts of operations call.
constexpr std::array kFunctions{
#define FUNCTION(name, ...) Function{#name, #__VA_ARGS__ "\n"},
#include "popops/codelets/elementwise_functions.h"
#undef FUNCTION
};

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool calls(std::string_view code, std::string_view name) {
  for (auto at = code.find(name); at != std::string_view::npos; at = code.find(name, at + 1)) {
    const auto end = at + name.size();
    if ((at == 0 || !isWord(code[at - 1])) && (end == code.size() || !isWord(code[end])))
      return true;
  }
  return false;
}

}  // namespace

std::string codeletText(Op op, ElementType type) {
  if (op == Op::kSelect) return "c ? a : b";
  // Only popx has these, with its own polynomials, which no C++ library has.
  if (op == Op::kErfInv || op == Op::kGeluGradient || op == Op::kGeluErfGradient) return "";
  if (type == ElementType::kDouble) return "";
  if (type == ElementType::kBool) return boolText(op);
  return type == ElementType::kFloat || type == ElementType::kHalf ? floatText(op)
                                                                   : integerText(op);
}

std::string codeletFunctions(const std::string& code) {
  std::string functions;
  for (auto f = kFunctions.rbegin(); f != kFunctions.rend(); ++f)
    if (calls(code, f->name) || calls(functions, f->name))
      functions = std::string(f->definition) + functions;
  return functions;
}

}  // namespace popops::internal
