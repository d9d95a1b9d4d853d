#include "engine/codelets/Compiler.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <system_error>

#include "engine/Errors.hpp"
#include "engine/codelets/Process.hpp"
#include "engine/codelets/WorkerCalls.hpp"

namespace ipujax::engine {
namespace {

namespace fs = std::filesystem;

}  // namespace

fs::path headerFolder() {
  std::vector<fs::path> places;
  if (const char* given = std::getenv("IPUJAX_CODELET_INCLUDE")) places.emplace_back(given);
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&runCompiler), &info) != 0 && info.dli_fname) {
    const fs::path folder = fs::path(info.dli_fname).parent_path();
    places.push_back(folder / "include");
    places.push_back(folder.parent_path() / "include");
  }
#ifdef IPUJAX_SOURCES  // not in wheels, which are elsewhere
  places.emplace_back(IPUJAX_SOURCES);
#endif
  for (const auto& place : places) {
    if (fs::exists(place / "poplar" / "VertexTable.hpp")) return fs::absolute(place);
  }
  throw link_error(
      "[codelets] needs the header poplar/VertexTable.hpp; found it neither beside the library nor "
      "in the sources. Set IPUJAX_CODELET_INCLUDE to the folder that holds poplar/ "
      "and engine/VertexAbi.hpp.");
}

TemporaryFolder::TemporaryFolder() {
  std::error_code none;
  std::string name = (fs::temp_directory_path(none) / "ipujax-codelets-XXXXXX").string();
  if (none || !mkdtemp(name.data())) {
    const char* given = std::getenv("TMPDIR");
    throw file_load_error("[codelets] needs a writable temporary folder; got " +
                          std::string(given ? given : "/tmp") + ". Set TMPDIR.");
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

namespace {

std::vector<std::string> compilerCommand() {
  const char* given = std::getenv("CXX");
  std::vector<std::string> command = splitArguments(given && *given ? given : "c++");
  if (command.empty()) command.emplace_back("c++");
  return command;
}

Finished run(const char* where, const std::vector<std::string>& command) {
  try {
    return runProcess(command);
  } catch (const std::system_error& e) {
    throw graph_program_compilation_error(std::string("[") + where +
                                          "] needs a C++ compiler on this host; could not start " +
                                          std::string(e.what()) + ". Install one, or set CXX.");
  }
}

/// Those of the wanted flags that the compiler knows. With them it accepts what the IPU's compiler,
/// Clang, accepts; half arithmetic is fast if the processor converts halves; and code without stack
/// left hits the guard page.
std::vector<std::string> knownFlags(const char* where, const std::vector<std::string>& command) {
  static std::mutex mutex;
  static std::map<std::vector<std::string>, std::vector<std::string>> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [it, added] = known.try_emplace(command);
  if (!added) return it->second;
  std::vector<std::string> wanted = {"-fpermissive", "-fexcess-precision=16",
                                     "-fstack-clash-protection"};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("f16c")) wanted.emplace_back("-mf16c");
#endif
  for (const std::string& flag : wanted) {
    std::vector<std::string> trial = command;
    trial.insert(trial.end(), {"-Werror", flag, "-fsyntax-only", "-x", "c++", "/dev/null"});
    if (run(where, trial).exit_code == 0) it->second.push_back(flag);
  }
  return it->second;
}

/// The user's flags except those that ask for an older C++ than that of the headers, or disable
/// features that these use.
std::vector<std::string> userFlags(const std::string& flags) {
  std::vector<std::string> words = splitArguments(flags);
  std::erase_if(words, [](const std::string& word) {
    if (word == "-fno-exceptions" || word == "-fno-rtti") return true;
    for (const char* old : {"98", "03", "0x", "11", "1y", "14"})
      if (word == std::string("-std=c++") + old || word == std::string("-std=gnu++") + old)
        return true;
    return false;
  });
  return words;
}

}  // namespace

void runCompiler(const char* where, const std::vector<std::string>& arguments,
                 const std::string& flags) {
  std::vector<std::string> command = compilerCommand();
  const std::string compiler = command.back();
  const std::string headers = headerFolder().string();
  const std::vector<std::string> known = knownFlags(where, command);
  for (const std::string& word :
       {std::string("-std=c++17"), std::string("-w"), std::string("-Wno-narrowing"),
        std::string("-isystem"), headers, std::string("-isystem"), headers + "/poplar/codelets",
        std::string("-idirafter"), headers + "/poplar"})
    command.push_back(word);
  for (const auto& words : {known, arguments, userFlags(flags)})
    command.insert(command.end(), words.begin(), words.end());
  const Finished finished = run(where, command);
  if (finished.exit_code == 0) return;
  throw graph_program_compilation_error(std::string("[") + where + "] needs C++ that compiles; " +
                                        compiler + " said:\n" + finished.output);
}

void runLinker(const char* where, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = compilerCommand();
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Finished finished = run(where, command);
  if (finished.exit_code == 0) return;
  if (const std::string instruction = missingAssembly(finished.output); !instruction.empty())
    throw link_error(std::string("[") + where +
                         "] needs vertices in C++; got inline assembly of an IPU (" + instruction +
                         "), which has no meaning for hosts. Give the vertex a branch in C++ "
                         "outside of #ifdef __IPU__.",
                     finished.output);
  throw link_error(
      std::string("[") + where +
          "] needs a definition of every function that codelets call; the linker said:\n" +
          finished.output + "Add the source that defines it, too.",
      finished.output);
}

}  // namespace ipujax::engine
