// popc: compiles sources of codelets, and writes them to a .gp file for Graph::addCodelets.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/Errors.hpp"
#include "engine/codelets/CodeletArchive.hpp"
#include "engine/codelets/CodeletStore.hpp"
#include "engine/codelets/Codelets.hpp"

namespace {

namespace fs = std::filesystem;
using ipujax::engine::CodeletArchive;

constexpr const char* kUsage =
    "usage: popc [options] FILE.cpp... [-o FILE.gp]\n"
    "\n"
    "Compiles codelets for the host, and writes sources and native code to a .gp file (default:\n"
    "a.gp). The native code runs where IPUJAX_TRUST_NATIVE_CODE names a folder that holds the "
    "file;\n"
    "everywhere else the sources are compiled again.\n"
    "\n"
    "  -o FILE, --output=FILE   where to write\n"
    "  -I DIR, -D NAME[=VALUE], -U NAME, -O LEVEL, -g, -W..., -f..., -std=...\n"
    "                           for the host's C++ compiler ($CXX, or c++)\n"
    "  -X OPTION                the next word, for the compiler\n"
    "  --target=LIST, -march=NAME\n"
    "                           names of targets; all get the same\n"
    "  --list-targets           print these names\n"
    "  -h, --help               print this\n"
    "  --version                print the version\n";
constexpr const char* kTargets = "cpu\nipu1\nipu2\nipu21\n";

/// Options of the SDK's popc for outputs other than a .gp file, and what to do instead.
constexpr std::pair<const char*, const char*> kRefused[] = {
    {"-S",
     "it compiles for hosts and has no assembly of an IPU. For a host's use c++ -S -I include"},
    {"-c", "a .gp file has sources and whole libraries. Leave it out"},
    {"-E", "it writes .gp files alone. Use c++ -E -I include"}};

struct Arguments {
  std::vector<std::string> sources;
  std::string output = "a.gp";
  std::string flags;
};

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Appends a word, in quotes if it contains a blank.
void addFlag(std::string& flags, const std::string& word) {
  flags +=
      (flags.empty() ? "" : " ") + (word.find(' ') == std::string::npos ? word : '"' + word + '"');
}

/// Checks a name for -march; others ask for instructions that other hosts may lack.
void checkArchitecture(const std::string& name) {
  std::istringstream known(kTargets);
  for (std::string target; std::getline(known, target);)
    if (name == target) return;
  throw UsageError("popc needs a name of --list-targets for -march; got '" + name +
                   "'. Codelets run on any host like this one: leave it out.");
}

bool startsWithAny(const std::string& word, std::initializer_list<const char*> prefixes) {
  for (const char* prefix : prefixes)
    if (word.rfind(prefix, 0) == 0) return true;
  return false;
}

/// Hosts run the C++ of codelets: replaces a file of assembly by the C++ file of the same name
/// beside it, or leaves it out.
std::vector<std::string> withoutAssembly(const std::vector<std::string>& given) {
  const std::set<std::string> all(given.begin(), given.end());
  std::vector<std::string> sources;
  for (const std::string& path : given) {
    const std::string ending = fs::path(path).extension().string();
    const std::string twin = fs::path(path).replace_extension(".cpp").string();
    if (ending != ".S" && ending != ".s") {
      sources.push_back(path);
    } else if (!fs::exists(twin)) {
      std::cerr << "popc leaves out " << path << ": there is no " << twin << " for hosts.\n";
    } else if (all.count(twin) == 0) {
      sources.push_back(twin);
    }
  }
  return sources;
}

Arguments read(const std::vector<std::string>& words) {
  Arguments found;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&](std::size_t length) {
      if (word.size() > length) return word.substr(length);
      if (i + 1 == words.size())
        throw UsageError("popc needs a value behind " + word + "; got none.");
      return words[++i];
    };
    if (word == "-o" || word == "--output") {
      found.output = value(word.size());
    } else if (startsWithAny(word, {"--output="})) {
      found.output = word.substr(9);
    } else if (startsWithAny(word, {"-I"})) {
      addFlag(found.flags, "-I" + fs::absolute(value(2)).string());
    } else if (startsWithAny(word, {"-D", "-U"})) {
      const std::string option = word.substr(0, 2);
      addFlag(found.flags, option + value(2));
    } else if (word == "-X") {
      addFlag(found.flags, value(2));
    } else if (word == "--target" || word == "-target") {
      value(word.size());
    } else if (startsWithAny(word, {"--target=", "-target="})) {
      continue;
    } else if (startsWithAny(word, {"-march"})) {
      checkArchitecture(word.substr(0, 7) == "-march=" ? word.substr(7) : value(word.size()));
    } else if (startsWithAny(word, {"-O", "-g", "-W", "-f", "-std="})) {
      addFlag(found.flags, word);
    } else if (startsWithAny(word, {"-"}) && word != "-") {
      for (const auto& [option, needs] : kRefused)
        if (word == option) throw UsageError("popc needs no " + word + ": " + needs + ".");
      throw UsageError("popc needs options of --help; got " + word + ".");
    } else {
      found.sources.push_back(word);
    }
  }
  found.sources = withoutAssembly(found.sources);
  if (found.sources.empty()) throw UsageError("popc needs a source; got none.");
  return found;
}

/// Throws the compiler's errors.
void compile(CodeletArchive& archive, const std::string& path, const std::string& flags) {
  const ipujax::engine::CodeletFile file = ipujax::engine::readCodelets(path, flags);
  archive.sources.push_back({fs::path(path).filename().string(), file.text, file.flags});
  const std::string unit = codeletUnit(file, file.found.types);
  try {
    archive.libraries.push_back({ipujax::engine::libraryKey(unit, file.flags),
                                 ipujax::engine::nativeCode(unit, file.flags)});
  } catch (const ipujax::engine::link_error&) {
    // It calls functions of another file, which are linked when both are loaded.
  }
}

int run(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "-h" || word == "--help") return std::cout << kUsage, 0;
    if (word == "--version") return std::cout << "popc of ipujax " IPUJAX_VERSION "\n", 0;
    if (word == "--list-targets") return std::cout << kTargets, 0;
  }
  const Arguments arguments = read(words);
  CodeletArchive archive;
  for (const std::string& path : arguments.sources) compile(archive, path, arguments.flags);
  ipujax::engine::writeFile(arguments.output, ipujax::engine::writeArchive(archive));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const UsageError& e) {
    std::cerr << e.what() << " See popc --help.\n";
    return 2;
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
