#include "engine/codelets/WorkerCalls.hpp"

#include <cctype>
#include <cstring>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string_view>
#include <vector>

#include "engine/codelets/CodeletText.hpp"

namespace ipujax::engine {
namespace {

/// Begins the names of functions that are not defined anywhere.
constexpr const char* kNoAssembly = "ipujax_no_assembly_";

using Operands = std::map<std::string, std::string>;  ///< "%[name]" or "%0": its expression

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

/// The index after the quoted text that begins at `at`, which may be a raw string.
std::size_t behindText(const std::string& code, std::size_t at) {
  if (code[at] == '"' && at > 0 && code[at - 1] == 'R') {
    const std::size_t open = code.find('(', at);
    if (open == std::string::npos) return code.size();
    const std::string close = ")" + code.substr(at + 1, open - at - 1) + "\"";
    const std::size_t end = code.find(close, open);
    return end == std::string::npos ? code.size() : end + close.size();
  }
  for (std::size_t i = at + 1; i < code.size(); ++i) {
    if (code[i] == '\\')
      ++i;
    else if (code[i] == code[at])
      return i + 1;
  }
  return code.size();
}

/// The parts of a list up to its closing bracket, at which `at` ends; none if there is no bracket.
std::vector<std::string> parts(const std::string& code, std::size_t& at, char separator) {
  std::vector<std::string> found(1);
  for (int depth = 0; at < code.size();) {
    const char c = code[at];
    if (c == '"' || c == '\'') {
      const std::size_t end = behindText(code, at);
      found.back() += code.substr(at, end - at);
      at = end;
      continue;
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && depth-- == 0) return found;
    ++at;
    if (c == separator && depth == 0)
      found.emplace_back();
    else
      found.back() += c;
  }
  return {};
}

/// The contents of string literals, one after the other.
std::string spoken(const std::string& literals) {
  std::string said;
  for (std::size_t at = 0; (at = literals.find('"', at)) != std::string::npos;) {
    const std::size_t end = behindText(literals, at);
    if (at > 0 && literals[at - 1] == 'R') {
      const std::size_t open = literals.find('(', at) + 1;
      said += literals.substr(open, literals.rfind(')', end) - open);
    } else {
      for (std::size_t i = at + 1; i + 1 < end; ++i) {
        const bool escaped = literals[i] == '\\';
        if (escaped) ++i;
        said += escaped && literals[i] == 'n' ? '\n' : escaped ? ' ' : literals[i];
      }
    }
    at = end;
  }
  return said;
}

Operands operandsOf(const std::vector<std::string>& sections) {
  static const std::regex operand(R"(^(?:\[(\w+)\])?\s*"[^"]*"\s*\(([^]*)\)$)");
  Operands found;
  for (std::size_t section = 1, number = 0; section < 3 && section < sections.size(); ++section) {
    const std::string list = sections[section] + ")";
    std::size_t at = 0;
    for (const std::string& part : parts(list, at, ',')) {
      const std::string text = trimmed(part);
      std::smatch match;
      if (!std::regex_search(text, match, operand)) continue;
      found["%" + std::to_string(number++)] = match[2];
      if (match[1].matched) found["%[" + match[1].str() + "]"] = match[2];
    }
  }
  return found;
}

/// Registers and their contents, as C++; the vertex is in the first.
class Registers {
 public:
  explicit Registers(Operands operands) : values_(std::move(operands)) { values_["$m0"] = "this"; }

  /// Sets a register; false if the symbol is not that of a codelet without template arguments.
  bool set(const std::string& name, const std::string& symbol) {
    static const std::regex of_codelet(R"(^__runCodelet_([A-Za-z]\w*)$)");
    std::smatch match;
    if (!std::regex_search(symbol, match, of_codelet)) return false;
    std::string type = match[1];
    if (type.find("___") != std::string::npos) return false;
    for (std::size_t at; (at = type.find("__")) != std::string::npos;) type.replace(at, 2, "::");
    values_[name] = "&::ipujax_workers::compute< ::" + type + ">";
    return true;
  }

  const std::string* find(const std::string& name) const {
    const auto it = values_.find(name);
    return it == values_.end() ? nullptr : &it->second;
  }

 private:
  Operands values_;
};

/// The calls in place of one instruction; none if it does not concern workers.
std::optional<std::string> callOf(const std::string& instruction, Registers& registers) {
  static const std::regex form(R"(^(\w+)(?:\s+([^]*))?$)");
  std::smatch match;
  if (!std::regex_search(instruction, match, form)) return std::nullopt;
  const std::string list = match[2].str() + ")";
  std::size_t at = 0;
  std::vector<std::string> arguments = parts(list, at, ',');
  for (std::string& argument : arguments) argument = trimmed(argument);
  if (match[1] == "sync" || match[1] == "nop" || match[1] == "fnop") return "";
  if (match[1] == "setzi" && arguments.size() == 2 && registers.set(arguments[0], arguments[1]))
    return "";
  if (match[1] != "runall" || arguments.size() != 3 || arguments[2] != "0") return std::nullopt;
  const std::string* entry = registers.find(arguments[0]);
  const std::string* vertex = registers.find(arguments[1]);
  if (!entry || !vertex) return std::nullopt;
  return "::ipujax_workers::runAll((void*)(" + *entry + "), (void*)(" + *vertex + ")); ";
}

/// The calls in place of assembly; none for other assembly, such as empty compiler barriers.
std::optional<std::string> callsOf(const std::vector<std::string>& sections) {
  std::string code = spoken(sections[0]);
  if (trimmed(code).empty()) return std::nullopt;
  for (char& c : code)
    if (c == ';') c = '\n';
  Registers registers(operandsOf(sections));
  std::istringstream instructions(code);
  std::string calls;
  for (std::string line; std::getline(instructions, line);) {
    const std::string instruction = trimmed(line);
    if (instruction.empty()) continue;
    const std::optional<std::string> call = callOf(instruction, registers);
    if (!call) return std::nullopt;
    calls += *call;
  }
  return "do { " + calls + "} while (false)";
}

/// Whether the assembly that begins here is not a statement but the name of a declared function or
/// variable, or the start of the text.
bool isLabel(const std::string& code, std::size_t begin, const std::vector<std::string>& sections) {
  if (sections.size() > 1 || code.find("volatile", begin) < code.find('(', begin)) return false;
  const std::size_t before = code.find_last_not_of(" \t\r\n", begin == 0 ? 0 : begin - 1);
  return before == std::string::npos || std::string(";{}:").find(code[before]) == std::string::npos;
}

/// A call of an undefined function, which names the instruction.
std::string missing(const std::string& said) {
  static const std::regex instruction(R"((?:^|[\n;{]|\w+:)\s*([a-z]\w*)(?!\w*:))");
  std::smatch match;
  const std::string word = std::regex_search(said, match, instruction) ? match[1].str() : "other";
  const std::string name = kNoAssembly + word;
  return "do { extern void " + name + "(); " + name + "(); } while (false)";
}

/// The replacement for assembly that the host's assembler does not know; none if the assembly
/// stays.
std::optional<std::string> inPlaceOf(const std::string& code, std::size_t begin,
                                     const std::vector<std::string>& sections) {
  const std::string said = spoken(sections[0]);
  const std::string text = trimmed(said);
  if (text.empty()) return std::nullopt;
  if (isLabel(code, begin, sections)) {
    if (text[0] == '$') return "";  // a variable in a register of its own
    return std::nullopt;
  }
  if (sections.size() == 1 && text[0] == '.') return "";  // functions in assembly, at file scope
  if (const std::optional<std::string> calls = callsOf(sections)) return calls;
  return missing(said);
}

/// Whether a place of preprocessed text is in a system header, by the line markers before it.
class SystemHeaders {
 public:
  explicit SystemHeaders(const std::string& text) : text_(text) {}

  bool contain(std::size_t place) {
    for (; next_ != std::string::npos && next_ < place; next_ = text_.find("\n# ", next_ + 1)) {
      const std::size_t end = text_.find('\n', next_ + 1);
      const auto line = std::string_view(text_).substr(next_ + 1, end - next_ - 1);
      inside_ = beginsSystemHeader(line).value_or(inside_);
    }
    return inside_;
  }

 private:
  const std::string& text_;
  std::size_t next_ = text_.find("\n# ");
  bool inside_ = false;
};

}  // namespace

std::string withWorkerCalls(const std::string& preprocessed) {
  static const std::regex statement(
      R"(\b(?:asm|__asm__|__asm)\b\s*(?:(?:volatile|__volatile__|__volatile)\s*)?\()",
      std::regex::optimize);
  SystemHeaders headers(preprocessed);
  std::string made;
  std::size_t done = 0;
  for (std::sregex_iterator it(preprocessed.begin(), preprocessed.end(), statement), end; it != end;
       ++it) {
    const auto begin = static_cast<std::size_t>(it->position());
    if (begin < done || headers.contain(begin)) continue;
    std::size_t at = begin + static_cast<std::size_t>(it->length());
    const std::vector<std::string> sections = parts(preprocessed, at, ':');
    if (sections.empty()) continue;
    const std::optional<std::string> instead = inPlaceOf(preprocessed, begin, sections);
    if (!instead) continue;
    std::string lines;  // as many as were there
    for (std::size_t i = begin; i < at; ++i)
      if (preprocessed[i] == '\n') lines += '\n';
    made += preprocessed.substr(done, begin - done) + *instead + lines;
    done = at + 1;
  }
  return made + preprocessed.substr(done);
}

std::string withoutContexts(const std::string& text) {
  static const std::regex context(R"re(\btarget\s*\(\s*"(?:supervisor|worker)"\s*\))re",
                                  std::regex::optimize);
  return std::regex_replace(text, context, "unused");
}

std::string withWorkersHeader(const std::string& source) {
  static const std::string prelude = "#include <poplar/codelets/prelude.h>\n";
  std::string result;
  if (source.find("#define IPUJAX_OWN_VECTORS") == std::string::npos) {
    for (const char* name : {"IPUJAX_USES_BUILTINS", "IPUJAX_USES_VERTEX_BASE"})
      if (source.find(std::string("#define ") + name) == std::string::npos)
        result += std::string("#define ") + name + " 1\n";
  }
  const std::size_t at = source.find(prelude);
  const std::size_t behind = at == std::string::npos ? 0 : at + prelude.size();
  return result + source.substr(0, behind) + "#include <poplar/codelets/workers.h>\n" +
         source.substr(behind);
}

bool isOfTheDevice(const std::string& message) {
  for (const char* words :
       {"no such instruction", "unknown mnemonic", "invalid instruction", "is unknown",
        "Assembler messages:", "register name", "impossible constraint", "__builtin_ipu_"})
    if (message.find(words) != std::string::npos) return true;
  return false;
}

bool hasAssembly(const std::string& source) {
  static const std::regex of_an_ipu(R"(\basm\b|\b__asm(?:__)?\b)", std::regex::optimize);
  return (source.find("$m") != std::string::npos || source.find("$a") != std::string::npos) &&
         std::regex_search(source, of_an_ipu);
}

std::string missingAssembly(const std::string& message) {
  const std::size_t at = message.find(kNoAssembly);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + std::strlen(kNoAssembly);
  std::size_t end = begin;
  while (end < message.size() &&
         (std::isalnum(static_cast<unsigned char>(message[end])) != 0 || message[end] == '_'))
    ++end;
  return message.substr(begin, end - begin);
}

}  // namespace ipujax::engine
