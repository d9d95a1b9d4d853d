#include "engine/codelets/LoopCost.hpp"

#include <algorithm>
#include <set>
#include <string_view>

namespace ipujax::engine {
namespace {

// An assumption: between PopLibs' estimates for a float square root (5) and a logarithm (60).
constexpr double kMathCycles = 20;

using Tokens = std::vector<std::string>;

/// The index after the bracket that closes the one at i.
std::size_t behind(const Tokens& t, std::size_t i) {
  const std::string open = t[i];
  const std::string close = open == "(" ? ")" : "}";
  int depth = 0;
  for (; i < t.size(); ++i) {
    if (t[i] == open) ++depth;
    if (t[i] == close && --depth == 0) return i + 1;
  }
  return t.size();
}

double operations(const Tokens& t, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += operationCycles(t[i]);
  return sum;
}

struct Innermost {
  int depth = 0;
  double cycles = 0;
};

void search(const Tokens& t, std::size_t begin, std::size_t end, int depth, Innermost& found) {
  for (std::size_t i = begin; i + 1 < end; ++i) {
    const bool loop = (t[i] == "for" || t[i] == "while") && t[i + 1] == "(";
    if (!loop) continue;
    const std::size_t body = behind(t, i + 1);
    std::size_t last = body;
    if (body < end && t[body] == "{") {
      last = behind(t, body);
    } else {
      while (last < end && t[last] != ";" && t[last] != "{")
        last = t[last] == "(" ? behind(t, last) : last + 1;
      if (last < end && t[last] == "{") last = behind(t, last);
    }
    search(t, body, std::min(last, end), depth + 1, found);
    const double cycles = 1 + operations(t, body, std::min(last, end));
    if (depth + 1 > found.depth || (depth + 1 == found.depth && cycles > found.cycles))
      found = {depth + 1, cycles};
    i = std::max(i, last > i + 1 ? last - 1 : i);
  }
}

}  // namespace

double operationCycles(const std::string& token) {
  static const std::set<std::string_view> kSimple = {
      "[", "+", "-", "*", "&", "|", "^", "?", "load_postinc", "store_postinc"};
  static const std::set<std::string_view> kMath = {
      "/",   "%",   "exp", "log",  "tanh", "sigmoid", "sqrt",  "rsqrt", "sin", "cos",
      "tan", "pow", "erf", "expf", "logf", "sqrtf",   "tanhf", "exp2",  "log2"};
  return kSimple.count(token) != 0 ? 1 : kMath.count(token) != 0 ? kMathCycles : 0;
}

double loopCycles(const Tokens& tokens) {
  Innermost found;
  search(tokens, 0, tokens.size(), 0, found);
  const auto names = [&](const char* type) {
    return std::find(tokens.begin(), tokens.end(), type) != tokens.end();
  };
  const double lanes = names("half4") ? 4 : names("half2") || names("float2") ? 2 : 1;
  return found.cycles / lanes;
}

}  // namespace ipujax::engine
