#include "engine/codelets/BracedAssignments.hpp"

#include <regex>

namespace ipujax::engine {
namespace {

constexpr std::size_t kLongest = 256;  ///< of the target of an assignment

/// Replaces comments and quoted texts by blanks; all other characters keep their places.
std::string codeOnly(const std::string& text) {
  static const std::regex not_code(
      R"re(//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')re",
      std::regex::optimize);
  std::string code = text;
  for (std::sregex_iterator it(text.begin(), text.end(), not_code), end; it != end; ++it) {
    for (auto at = it->position(); at < it->position() + it->length(); ++at)
      if (code[static_cast<std::size_t>(at)] != '\n') code[static_cast<std::size_t>(at)] = ' ';
  }
  return code;
}

/// The target of the '=' at this place, if it is an expression at the start of a statement: names,
/// members and subscripts. Empty for a declaration.
std::string assignedAt(const std::string& code, std::size_t equals) {
  static const std::regex assigned(
      R"((?:[;{})]|[^:]:(?!:)|\belse)\s*((?:\*\s*)*[A-Za-z_]\w*)"
      R"((?:\s*(?:->|\.|::)\s*[A-Za-z_]\w*|\s*\[(?:[^\[\]]|\[[^\[\]]*\])*\])*)\s*$)",
      std::regex::optimize);
  const std::size_t begin = equals < kLongest ? 0 : equals - kLongest;
  const std::string before = code.substr(begin, equals - begin);
  std::smatch match;
  return std::regex_search(before, match, assigned) ? match[1].str() : "";
}

}  // namespace

std::string withTypedBraces(const std::string& text) {
  const std::string code = codeOnly(text);
  std::string made;
  std::size_t done = 0;
  for (std::size_t equals = 0; (equals = code.find('=', equals)) != std::string::npos; ++equals) {
    const std::size_t brace = code.find_first_not_of(" \t\n", equals + 1);
    if (brace == std::string::npos) break;
    if (code[brace] != '{') continue;
    const std::string target = assignedAt(code, equals);
    if (target.empty() || target == "else") continue;
    made += text.substr(done, brace - done) + "std::decay_t<decltype(" + target + ")>";
    done = brace;
  }
  return made + text.substr(done);
}

bool wantsTypedBraces(const std::string& message) {
  return message.find("<brace-enclosed initializer list>") != std::string::npos &&
         message.find("in assignment") != std::string::npos;
}

}  // namespace ipujax::engine
