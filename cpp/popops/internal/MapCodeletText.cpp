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
#include "engine/expr/ElementwiseOps.def"
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
#include "engine/expr/ElementwiseOps.def"
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
#include "engine/expr/ElementwiseOps.def"
    default:
      break;
  }
  return "";
}

struct Function {
  std::string_view name, definition;
};

#define STANDARD(name, standard) \
  Function { #name, "inline float " #name "(float x) { return std::" #standard "(x); }\n" }

/// What the texts of operations call, as functions of C++14's library. A later one may call
/// earlier ones.
constexpr std::array kFunctions{
    STANDARD(absOf, fabs),
    STANDARD(acosFloat, acos),
    STANDARD(acoshFloat, acosh),
    STANDARD(asinFloat, asin),
    STANDARD(asinhFloat, asinh),
    STANDARD(atanFloat, atan),
    STANDARD(atanhFloat, atanh),
    STANDARD(cbrtFloat, cbrt),
    STANDARD(coshFloat, cosh),
    STANDARD(erfFloat, erf),
    STANDARD(erfcFloat, erfc),
    STANDARD(expFloat, exp),
    STANDARD(exp2Float, exp2),
    STANDARD(expm1Float, expm1),
    STANDARD(logFloat, log),
    STANDARD(log1pFloat, log1p),
    STANDARD(logGamma, lgamma),
    STANDARD(sinhFloat, sinh),
    STANDARD(tanhFloat, tanh),
    Function{"atan2Float",
             "inline float atan2Float(float y, float x) { return std::atan2(y, x); "
             "}\n"},
    Function{"powLoops", "inline float powLoops(float x, float y) { return std::pow(x, y); }\n"},
    Function{"withSign",
             "inline float withSign(float x, float sign) { return std::copysign(x, "
             "sign); }\n"},
    Function{"sigmoidFloat",
             "inline float sigmoidFloat(float x) { return 1.0f / (1.0f + std::exp(-x)); }\n"},
    Function{"geluErfFloat",
             "inline float geluErfFloat(float x) {\n"
             "  const float share = 0.5f * (1.0f + std::erf(x * 0.70710678f));\n"
             "  return share == 0.0f ? -0.0f : x * share;\n"
             "}\n"},
    Function{"geluFloat",
             "inline float geluFloat(float x) {\n"
             "  return 0.5f * x * (1.0f + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));\n"
             "}\n"},
    Function{"bitsOf",
             "inline unsigned bitsOf(float x) {\n"
             "  unsigned bits;\n"
             "  std::memcpy(&bits, &x, sizeof bits);\n"
             "  return bits;\n"
             "}\n"},
    Function{"sameBits",
             "template <class To, class From>\n"
             "inline To sameBits(From from) {\n"
             "  To to;\n"
             "  std::memcpy(&to, &from, sizeof to);\n"
             "  return to;\n"
             "}\n"},
    // Of zeros the positive one is the larger; a NaN of either operand is the result.
    Function{"maximumOf",
             "inline float maximumOf(float x, float y) {\n"
             "  if (x == y) return std::signbit(x) ? y : x;\n"
             "  return x != x || x > y ? x : y;\n"
             "}\n"},
    Function{"minimumOf",
             "inline float minimumOf(float x, float y) {\n"
             "  if (x == y) return std::signbit(x) ? x : y;\n"
             "  return x != x || x < y ? x : y;\n"
             "}\n"},
    Function{"kBits",
             "template <class T>\n"
             "constexpr int kBits = static_cast<int>(sizeof(T)) * 8;\n"},
    Function{"leadingZeros",
             "template <class T>\n"
             "inline int leadingZeros(T x) {\n"
             "  const auto bits = static_cast<std::make_unsigned_t<T>>(x);\n"
             "  int zeros = 0;\n"
             "  while (zeros < kBits<T> && ((bits >> (kBits<T> - 1 - zeros)) & 1u) == 0) ++zeros;\n"
             "  return zeros;\n"
             "}\n"},
    // Where an IPU leaves the result open: x / 0 = -1, x % 0 = x, lowest / -1 = lowest.
    Function{"quotientOf",
             "template <class T>\n"
             "inline T quotientOf(T x, T y) {\n"
             "  if (y == 0) return static_cast<T>(-1);\n"
             "  const bool open = std::is_signed<T>::value && y == static_cast<T>(-1) &&\n"
             "                    x == std::numeric_limits<T>::min();\n"
             "  return open ? x : static_cast<T>(x / y);\n"
             "}\n"},
    Function{"remainderOf",
             "template <class T>\n"
             "inline T remainderOf(T x, T y) {\n"
             "  if (y == 0) return x;\n"
             "  const bool open = std::is_signed<T>::value && y == static_cast<T>(-1);\n"
             "  return open ? static_cast<T>(0) : static_cast<T>(x % y);\n"
             "}\n"},
    Function{"powerOf",
             "template <class T>\n"
             "inline T powerOf(T x, T y) {\n"
             "  using U = std::make_unsigned_t<T>;\n"
             "  if (std::is_signed<T>::value && y < 0) {\n"
             "    if (x == static_cast<T>(-1)) return (y & 1) ? x : static_cast<T>(1);\n"
             "    return static_cast<T>(x == 1);\n"
             "  }\n"
             "  unsigned long long base = static_cast<U>(x), result = 1;\n"
             "  for (auto rest = static_cast<U>(y); rest != 0; rest >>= 1) {\n"
             "    if (rest & 1) result *= base;\n"
             "    base *= base;\n"
             "  }\n"
             "  return static_cast<T>(result);\n"
             "}\n"},
    Function{"clampOf",
             "template <class T>\n"
             "inline T clampOf(T x, T low, T high) {\n"
             "  const T raised = x < low ? low : x;\n"
             "  return raised > high ? high : raised;\n"
             "}\n"},
    // Truncates and saturates; NaN gives 0.
    Function{"toInteger",
             "template <class T>\n"
             "inline T toInteger(float x) {\n"
             "  constexpr T kLowest = std::numeric_limits<T>::min();\n"
             "  constexpr T kHighest = std::numeric_limits<T>::max();\n"
             "  if (x != x) return 0;\n"
             "  if (x <= static_cast<float>(kLowest)) return kLowest;\n"
             "  return x >= static_cast<float>(kHighest) ? kHighest : static_cast<T>(x);\n"
             "}\n"},
};
#undef STANDARD

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
  // Of popx alone, with polynomials of their own that no library of C++ has.
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
