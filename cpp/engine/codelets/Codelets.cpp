#include "engine/codelets/Codelets.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
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

/// Puts files included by "name", found beside the including one, into the text, each once.
std::string inlineIncludes(const std::string& text, const std::string& name, const fs::path& folder,
                           std::set<std::string>& seen) {
  std::istringstream in(text);
  const auto marker = [&](int line) {
    return "#line " + std::to_string(line) + " \"" + name + "\"\n";
  };
  std::string result = marker(1);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::string included = localInclude(line);
    const fs::path file = folder / included;
    if (included.empty() || !fs::exists(file)) {
      if (line.find("#pragma once") == std::string::npos) result += line;
      result += "\n";
    } else if (seen.insert(fs::canonical(file).string()).second) {
      result +=
          inlineIncludes(readFile(file), included, file.parent_path(), seen) + marker(number + 1);
    } else {
      result += "\n";
    }
  }
  return result;
}

}  // namespace

CodeletFile codeletsFromText(std::string text, const std::string& flags, const std::string& path) {
  CodeletFile file;
  const fs::path from(path);
  std::set<std::string> seen;
  file.text = inlineIncludes(text, from.filename().string(), from.parent_path(), seen);
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

std::string codeletUnit(const CodeletFile& file, const std::vector<std::string>& types) {
  std::ostringstream unit;
  unit << file.text
       << "\n#line 1 \"the table of codelets\"\n#include <poplar/VertexTable.hpp>\nnamespace {\n";
  for (std::size_t i = 0; i < types.size(); ++i) {
    unit << "using IpujaxType" << i << " = ::" << types[i] << ";\n"
         << "const IpujaxField ipujax_fields" << i << "[] = {\n";
    for (const auto& field : classOf(file, types[i]).fields) {
      unit << "  ipujax_codelet::field<IpujaxType" << i << ">(\"" << field << "\", &IpujaxType" << i
           << "::" << field << "),\n";
    }
    unit << "  {}};\n";
  }
  unit << "const IpujaxCodelet ipujax_table[] = {\n";
  for (std::size_t i = 0; i < types.size(); ++i) {
    unit << "  ipujax_codelet::codelet<IpujaxType" << i
         << (classOf(file, types[i]).declares_constructor ? ", false>(\"" : ", true>(\"")
         << types[i] << "\", ipujax_fields" << i << ", sizeof(ipujax_fields" << i
         << ") / sizeof(IpujaxField) - 1),\n";
  }
  unit << "  {}};\n}  // namespace\n"
       << "extern \"C\" __attribute__((visibility(\"default\")))\n"
       << "const IpujaxCodelet* ipujax_codelets(unsigned* count) {\n"
       << "  *count = " << types.size() << ";\n  return ipujax_table;\n}\n";
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
  const auto entry = reinterpret_cast<Entry>(dlsym(handle_, "ipujax_codelets"));
  if (!entry) {
    dlclose(handle_);
    throw link_error("[codelets] needs a library of codelets; got " + file +
                     ", which has no table of them. Remove it.");
  }
  codelets_ = entry(&count_);
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
  return "ipujax " IPUJAX_VERSION "\n" + flags + "\n" + unit;
}

}  // namespace

std::shared_ptr<const CodeletLibrary> CodeletLibrary::known(const std::string& text) {
  auto& by_text = libraries().by_text;
  if (const auto found = by_text.find(text); found != by_text.end()) return found->second;
  const auto store = CodeletStore::open();
  const auto kept = store ? store->find(text) : std::nullopt;
  if (!kept) return nullptr;
  try {
    const std::shared_ptr<const CodeletLibrary> library(new CodeletLibrary(kept->string()));
    by_text[text] = library;
    return library;
  } catch (const link_error&) {  // damaged: as if it were not there
    return nullptr;
  }
}

std::shared_ptr<const CodeletLibrary> CodeletLibrary::compile(const std::string& unit,
                                                              const std::string& flags) {
  const std::string text = textOf(unit, flags);
  const std::lock_guard<std::mutex> lock(libraries().mutex);
  if (auto library = known(text)) return library;
  const TemporaryFolder folder;
  const fs::path source = folder / "codelets.cpp";
  const fs::path result = folder / "codelets.so";
  writeFile(source, unit);
  // Access control is off because fields are set from outside; hidden, so that libraries do not
  // mix.
  runCompiler(kAddCodelets,
              {"-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-access-control",
               "-ffp-contract=off", "-Wno-attributes", source.string(), "-o", result.string()},
              flags);
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
