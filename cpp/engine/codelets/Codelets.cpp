#include "engine/codelets/Codelets.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <sstream>

#include "engine/Errors.hpp"
#include "engine/codelets/CodeletStore.hpp"
#include "engine/codelets/Compiler.hpp"

namespace ipujax::engine {
namespace {

namespace fs = std::filesystem;

const char* const kAddCodelets = "Graph::addCodelets";

/// The lines of preprocessed text that come from no system header (flag 3 of a line marker).
std::string withoutSystemHeaders(const std::string& text) {
  std::istringstream in(text);
  std::string kept;
  bool system = false;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("# ", 0) != 0) {
      if (!system) kept += line + "\n";
      continue;
    }
    const std::size_t quote = line.rfind('"');
    system = quote != std::string::npos && line.find(" 3", quote) != std::string::npos;
  }
  return kept;
}

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

/// Puts files included by "name", found beside the including one, into the text: at each place,
/// since the preprocessor may skip one of them, in a guard where the file has #pragma once.
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

  /// The attribute for the code of supervisors and workers, which other compilers refuse.
  static std::string forHost(std::string line) {
    for (const char* context : {"target(\"supervisor\")", "target(\"worker\")"}) {
      for (std::size_t at; (at = line.find(context)) != std::string::npos;)
        line.replace(at, std::char_traits<char>::length(context), "unused");
    }
    return line;
  }

  std::set<std::string> open_;
  std::map<std::string, std::size_t> ids_;
};

/// Whether a text has vectors of its own by the names of the IPU's, for hosts.
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

/// What the prelude is told of a text: macros in its first line.
std::string switches(const std::string& text) {
  std::string result;
  if (ownsVectors(text)) {
    result += "#define IPUJAX_OWN_VECTORS 1\n";
  } else if (text.find("__builtin_ipu_") != std::string::npos) {
    result += "#define IPUJAX_USES_BUILTINS 1\n";
  }
  return result + "#include <poplar/codelets/prelude.h>\n";
}

}  // namespace

CodeletFile codeletsFromText(std::string text, const std::string& flags, const std::string& path) {
  CodeletFile file;
  const fs::path from(path);
  file.text = Inliner().file(text, from.filename().string(), from.parent_path());
  file.text = switches(file.text) + file.text;
  file.flags = flags;
  const TemporaryFolder folder;
  writeFile(folder / "codelets.cpp", file.text);
  runCompiler(kAddCodelets,
              {"-E", (folder / "codelets.cpp").string(), "-o", (folder / "codelets.ii").string()},
              flags);
  file.found = parseCodelets(withoutSystemHeaders(readFile(folder / "codelets.ii")));
  return file;
}

CodeletFile readCodelets(const std::string& path, const std::string& flags) {
  return codeletsFromText(readFile(path), flags, path);
}

namespace {

const CodeletClass& classOf(const CodeletFile& file, const std::string& type) {
  const auto exact = file.found.classes.find(type);
  if (exact != file.found.classes.end()) return exact->second;
  return file.found.classes.at(type.substr(0, type.find('<')));
}

}  // namespace

namespace {

/// The alias of a type, declared in its class's namespace, where its arguments may have names.
std::string aliasOf(const std::string& type, const std::string& alias) {
  const std::string base = type.substr(0, type.find('<'));
  const std::size_t end = base.rfind("::");
  const std::string scope = end == std::string::npos ? "" : base.substr(0, end);
  const std::string declared = "using " + alias + " = ::" + type + ";\n";
  if (scope.empty()) return declared;
  return "namespace " + scope + " { " + declared + "}\nusing " + scope + "::" + alias + ";\n";
}

}  // namespace

std::string codeletUnit(const CodeletFile& file, const std::vector<std::string>& types) {
  std::ostringstream unit;
  unit << file.text << "\n#line 1 \"the table of codelets\"\n#include <poplar/VertexTable.hpp>\n";
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::string alias = "IpujaxType" + std::to_string(i);
    unit << aliasOf(types[i], alias) << "static IpujaxField ipujax_fields" << i << "[] = {\n";
    for (const auto& field : classOf(file, types[i]).fields)
      unit << "  IPUJAX_FIELD(" << alias << ", " << field << "),\n";
    unit << "  {}};\n";
  }
  unit << "static const IpujaxCodelet ipujax_table[] = {\n";
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::string fields = "ipujax_fields" + std::to_string(i);
    unit << "  ipujax_codelet::codelet<IpujaxType" << i
         << (classOf(file, types[i]).declares_constructor ? ", false>(\"" : ", true>(\"")
         << types[i] << "\", " << fields << ", ipujax_codelet::compact(" << fields << ", sizeof("
         << fields << ") / sizeof(IpujaxField) - 1)),\n";
  }
  const char* entry = "extern \"C\" __attribute__((visibility(\"default\")))\n";
  unit << "  {}};\n"
       << entry << "const IpujaxCodelet* ipujax_codelets(unsigned* count) {\n"
       << "  *count = " << types.size() << ";\n  return ipujax_table;\n}\n"
       << entry << "IpujaxEnter ipujax_enter() { return ipujax_codelet::kEnter; }\n";
  return unit.str();
}

CodeletLibrary::CodeletLibrary(const std::string& file)
    : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_) {
    const char* reason = dlerror();
    throw link_error(std::string("[codelets] could not load what was compiled: ") +
                     (reason ? reason : "no reason given"));
  }
  using Entry = const IpujaxCodelet* (*)(unsigned*);
  codelets_ = reinterpret_cast<Entry>(dlsym(handle_, "ipujax_codelets"))(&count_);
  enter_ = reinterpret_cast<IpujaxEnter (*)()>(dlsym(handle_, "ipujax_enter"))();
}

CodeletLibrary::~CodeletLibrary() { dlclose(handle_); }

const IpujaxCodelet& CodeletLibrary::codelet(const std::string& type) const {
  for (unsigned i = 0; i < count_; ++i) {
    if (type == codelets_[i].name) return codelets_[i];
  }
  throw unknown_vertex_type("[codelets] needs a vertex type that addCodelets added; got " + type +
                            ". Add its codelet first.");
}

namespace {

/// What this process compiled, or loaded from the user's folder; never let go, since programs that
/// were made of it may be loaded again.
struct Libraries {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const CodeletLibrary>> by_text;
};
Libraries& libraries() {
  static Libraries& all = *new Libraries();  // NOLINT: threads may run codelets to the very end
  return all;
}

/// All that a compiled unit depends on but the compiler.
std::string textOf(const std::string& unit, const std::string& flags) {
  return "ipujax " IPUJAX_VERSION " " + std::to_string(kIpujaxCodeletAbi) + "\n" + flags + "\n" +
         unit;
}

}  // namespace

std::shared_ptr<const CodeletLibrary> CodeletLibrary::known(const std::string& text) {
  auto& by_text = libraries().by_text;
  if (const auto found = by_text.find(text); found != by_text.end()) return found->second;
  const auto store = CodeletStore::open();
  const auto kept = store ? store->find(text) : std::nullopt;
  if (!kept) return nullptr;
  const std::shared_ptr<const CodeletLibrary> library(new CodeletLibrary(kept->string()));
  by_text[text] = library;
  return library;
}

namespace {

/// Between the sources of one unit, each of which is compiled by itself.
const std::string kNextSource = "\n#error ipujax: the next source of this unit\n";

std::vector<std::string> sourcesOf(const std::string& unit) {
  std::vector<std::string> sources;
  std::size_t begin = 0;
  for (std::size_t at; (at = unit.find(kNextSource, begin)) != std::string::npos;) {
    sources.push_back(unit.substr(begin, at - begin));
    begin = at + kNextSource.size();
  }
  sources.push_back(unit.substr(begin));
  return sources;
}

/// Writes `result`. Throws link_error where a function is defined nowhere.
void build(const std::string& unit, const std::string& flags, const TemporaryFolder& folder,
           const fs::path& result) {
  // Nothing of one library is seen by another: -shared libraries with codelets of one name are
  // loaded together.
  std::vector<std::string> link = {
      "-shared", "-Wl,-z,defs",  "-Wl,--gc-sections", "-Wl,--allow-multiple-definition",
      "-o",      result.string()};
  int number = 0;
  for (const std::string& text : sourcesOf(unit)) {
    const fs::path source = folder / ("codelets" + std::to_string(number++) + ".cpp").c_str();
    const std::string object = source.string() + ".o";
    writeFile(source, text);
    // Access control is off because fields are set from outside.
    runCompiler(kAddCodelets,
                {"-O3", "-c", "-fPIC", "-fvisibility=hidden", "-ffunction-sections",
                 "-fno-access-control", "-ffp-contract=off", source.string(), "-o", object},
                flags);
    link.push_back(object);
  }
  runLinker(kAddCodelets, link);
}

}  // namespace

std::string withSources(const std::string& unit, const std::vector<std::string>& others) {
  std::string all = unit;
  for (const std::string& other : others) all += kNextSource + other;
  return all;
}

std::shared_ptr<const CodeletLibrary> CodeletLibrary::compile(const std::string& unit,
                                                              const std::string& flags) {
  const std::string text = textOf(unit, flags);
  const std::lock_guard<std::mutex> lock(libraries().mutex);
  if (auto library = known(text)) return library;
  const TemporaryFolder folder;
  const fs::path result = folder / "codelets.so";
  build(unit, flags, folder, result);
  std::shared_ptr<const CodeletLibrary> library(new CodeletLibrary(result.string()));
  if (const auto store = CodeletStore::open()) store->add(text, result);
  libraries().by_text[text] = library;
  return library;
}

std::shared_ptr<const CodeletLibrary> CodeletLibrary::find(const std::string& unit,
                                                           const std::string& flags) {
  const std::lock_guard<std::mutex> lock(libraries().mutex);
  if (auto library = known(textOf(unit, flags))) return library;
  throw link_error(
      "[codelets] needs native code that this process compiled, or that the folder "
      "IPUJAX_TRUST_NATIVE_CODE holds; got an executable with codelets of neither. Set "
      "IPUJAX_TRUST_NATIVE_CODE to a folder of yours that no one else may write to, where the "
      "program is compiled and where it is loaded, and compile it once more.");
}

}  // namespace ipujax::engine
