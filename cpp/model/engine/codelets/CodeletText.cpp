#include "engine/codelets/CodeletText.hpp"

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "engine/codelets/CodeletStore.hpp"

namespace ipujax::engine {
namespace {

namespace fs = std::filesystem;

bool has(const std::string& text, const char* word) { return text.find(word) != std::string::npos; }

/// The file named in #include "..." or empty.
std::string localInclude(const std::string& line) {
  const std::size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line[hash] != '#') return "";
  const std::size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string::npos || line.compare(word, 7, "include") != 0) return "";
  const std::size_t open = line.find('"', word);
  const std::size_t close = open == std::string::npos ? open : line.find('"', open + 1);
  return close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

/// Inlines files included by "name" that lie beside the including one. It does so at each place,
/// since the preprocessor may skip one of them, within a guard if the file has #pragma once.
class Inliner {
 public:
  std::string file(const std::string& text, const std::string& name, const fs::path& folder) {
    std::istringstream in(text);
    const auto marker = [&](int line) {
      return "#line " + std::to_string(line) + " \"" + name + "\"\n";
    };
    std::string result = marker(1);
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      const std::string included = localInclude(line);
      const fs::path path = folder / included;
      if (included.empty() || !fs::is_regular_file(path)) {
        if (line.find("#pragma once") == std::string::npos) result += forHost(std::move(line));
        result += "\n";
      } else {
        result += inlined(path, included) + marker(number + 1);
      }
    }
    return result;
  }

 private:
  std::string inlined(const fs::path& path, const std::string& name) {
    const std::string key = fs::canonical(path).string();
    if (!open_.insert(key).second) return "\n";  // it includes itself
    const std::string text = readFile(path);
    std::string result = file(text, name, path.parent_path());
    open_.erase(key);
    if (text.find("#pragma once") == std::string::npos) return result;
    const auto number = ids_.try_emplace(key, ids_.size()).first->second;
    const std::string guard = "IPUJAX_INCLUDED_" + std::to_string(number);
    return "#ifndef " + guard + "\n#define " + guard + "\n" + result + "\n#endif\n";
  }

  /// Elements of size_t, long and unsigned long have 32 bits on an IPU, and so in its tensors.
  static std::string withNarrowFields(const std::string& line) {
    static const std::regex kUnsigned(
        R"(\b((?:Input|Output|InOut|Vector|VectorList)\s*<\s*(?:const\s+)?))"
        R"((?:(?:std\s*::\s*|::\s*)?size_t|unsigned\s+long(?:\s+int)?)\s*(?=[,>]))");
    static const std::regex kSigned(
        R"(\b((?:Input|Output|InOut|Vector|VectorList)\s*<\s*(?:const\s+)?))"
        R"((?:signed\s+)?long(?:\s+int)?\s*(?=[,>]))");
    if (line.size() >= 1000 || (!has(line, "size_t") && !has(line, "long"))) return line;
    return std::regex_replace(std::regex_replace(line, kUnsigned, "$1unsigned"), kSigned, "$1int");
  }

  /// Replaces the attribute for the code of supervisors and workers, which other compilers refuse.
  static std::string forHost(std::string line) {
    for (const char* context : {"target(\"supervisor\")", "target(\"worker\")"}) {
      for (std::size_t at; (at = line.find(context)) != std::string::npos;)
        line.replace(at, std::char_traits<char>::length(context), "unused");
    }
    return withNarrowFields(line);
  }

  std::set<std::string> open_;
  std::map<std::string, std::size_t> ids_;
};

/// Whether a text defines its own vectors for hosts, with the names of the IPU's.
bool ownsVectors(const std::string& text) {
  static const std::regex kDefinition(
      R"(using\s+float2\s*=|(struct|class)\s+float2\b|typedef.*\bfloat2\s*;)");
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.size() < 1000 && line.find("float2") != std::string::npos &&
        std::regex_search(line, kDefinition))
      return true;
  }
  return false;
}

/// Whether a text declares the type that counts hardware loops itself.
bool ownsRptsize(const std::string& text) {
  static const std::regex kDeclaration(R"(using\s+rptsize_t\s*=|typedef\s[^;]*\brptsize_t\s*;)");
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.size() < 1000 && has(line, "rptsize_t") && std::regex_search(line, kDeclaration))
      return true;
  }
  return false;
}

/// Undefines macros of <cmath>, such as M_PI, that a text has constants for.
std::string endedMacros(const std::string& text) {
  static const std::regex kConstant(R"(\bconst(?:expr)?\s[\w\s]*\b(M_[A-Z0-9_]+)\s*[={])");
  std::istringstream in(text);
  std::string result;
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (line.size() < 1000 && line.find("M_") != std::string::npos &&
        std::regex_search(line, match, kConstant))
      result += "#undef " + match[1].str() + "\n";
  }
  return result;
}

/// Declares Clang's vectors by a macro, since GCC ignores their attribute and would use float.
///
///     typedef float float2 __attribute__((ext_vector_type(2)));
///     typedef IPUJAX_EXT_VECTOR(float, 2) float2;
std::string withExtVectors(const std::string& text) {
  if (!has(text, "ext_vector_type")) return text;
  const std::string type = R"(((?:(?:unsigned|signed|long|short)\s+)*(?:\w+::)*\w+))";
  const std::string attribute =
      R"(__attribute(?:__)?\s*\(\(\s*(?:__)?ext_vector_type(?:__)?\s*\(([^()]*)\)\s*\)\))";
  static const std::regex kBehindName("\\btypedef\\s+" + type + "\\s+(\\w+)\\s+" + attribute,
                                      std::regex::optimize);
  static const std::regex kBehindType(type + "\\s+" + attribute, std::regex::optimize);
  const std::string named =
      std::regex_replace(text, kBehindName, "typedef IPUJAX_EXT_VECTOR($1, $3) $2");
  return std::regex_replace(named, kBehindType, "IPUJAX_EXT_VECTOR($1, $2)");
}

/// Macros that tell the prelude about a text, for its first lines. CodeletBuild.cpp reads the first
/// of these, too.
std::string switches(const std::string& text) {
  const bool own = ownsVectors(text);
  std::string result;
  if (!own && (has(text, "get_scount") || has(text, "SCOUNT")))
    result += "#define IPUJAX_COUNTS_CYCLES 1\n";
  if (own) result += "#define IPUJAX_OWN_VECTORS 1\n";
  if (!own && has(text, "__builtin_ipu_")) result += "#define IPUJAX_USES_BUILTINS 1\n";
  if (ownsRptsize(text)) result += "#define IPUJAX_OWN_RPTSIZE 1\n";
  if (has(text, "get_vertex_base")) result += "#define IPUJAX_USES_VERTEX_BASE 1\n";
  result += "#include <poplar/codelets/prelude.h>\n";
  if (has(text, "ext_vector_type")) result += "#include <poplar/codelets/ext_vectors.h>\n";
  return result + endedMacros(text);
}

}  // namespace

std::optional<bool> beginsSystemHeader(std::string_view line) {
  const std::size_t quote = line.rfind('"');
  if (!line.starts_with("# ") || quote == std::string_view::npos) return std::nullopt;
  const std::string_view flags = line.substr(quote + 1);
  const bool other_file = flags.starts_with(" 1") || flags.starts_with(" 2");
  if (!other_file) return std::nullopt;
  return flags.find(" 3") != std::string_view::npos;
}

bool usesIntrinsics(const std::string& text) {
  for (const char* word : {"__builtin_ipu_", "ipu_builtins", "ipu_vector_math", "ipu_intrinsics",
                           "ipu_memory_intrinsics"})
    if (has(text, word)) return true;
  return false;
}

bool workersMayWait(const std::string& text) {
  if (!has(text, "MultiVertex") && !has(text, "runall")) return false;
  for (const char* word : {"volatile", "atomic", "__sync_", "asm", "noinline", "#include \""})
    if (has(text, word)) return true;
  return false;
}

bool drawsNumbers(const std::string& text) {
  return has(text, "urand") || has(text, "grand") || has(text, "rmask") ||
         has(text, "IPUJAX_HALF_ROUNDING");
}

bool movesPointers(const std::string& text) {
  return has(text, "_postinc") || has(text, "ldb16_step") || has(text, "ldb32_step") ||
         has(text, "ldb64_step");
}

std::string wholeText(const std::string& text, const std::string& path) {
  const fs::path from(path);
  const std::string whole = Inliner().file(text, from.filename().string(), from.parent_path());
  return switches(whole) + withExtVectors(whole);
}

}  // namespace ipujax::engine
