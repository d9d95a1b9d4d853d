#include "engine/codelets/Compiler.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "engine/Errors.hpp"
#include "engine/codelets/Process.hpp"

namespace ipujax::engine {
namespace {

namespace fs = std::filesystem;

/// Where <poplar/Vertex.hpp> is: beside the extension, in the SDK folder of which this library is a
/// part, or in the source tree.
std::string includeFolder() {
  std::vector<fs::path> places;
  if (const char* given = std::getenv("IPUJAX_CODELET_INCLUDE")) places.emplace_back(given);
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&runCompiler), &info) != 0 && info.dli_fname) {
    const fs::path folder = fs::path(info.dli_fname).parent_path();
    places.push_back(folder / "include");
    places.push_back(folder.parent_path() / "include");
  }
  places.emplace_back(IPUJAX_SOURCES);
  for (const auto& place : places) {
    if (fs::exists(place / "poplar" / "VertexTable.hpp")) return fs::absolute(place).string();
  }
  throw link_error(
      "[codelets] needs the header poplar/VertexTable.hpp; found it neither beside the library nor "
      "in the sources. Set IPUJAX_CODELET_INCLUDE to the folder that holds poplar/ "
      "and engine/codelets/VertexAbi.hpp.");
}

}  // namespace

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

void runCompiler(const char* where, const std::vector<std::string>& arguments,
                 const std::string& flags) {
  const char* given = std::getenv("CXX");
  std::vector<std::string> command = splitArguments(given && *given ? given : "c++");
  const std::string compiler = command.empty() ? "c++" : command.back();
  if (command.empty()) command.push_back(compiler);
  const std::string headers = includeFolder();
  for (const std::string& word : {std::string("-std=c++17"), std::string("-isystem"), headers,
                                  std::string("-isystem"), headers + "/poplar/codelets"})
    command.push_back(word);
  command.insert(command.end(), arguments.begin(), arguments.end());
  const std::vector<std::string> words = splitArguments(flags);
  command.insert(command.end(), words.begin(), words.end());
  const std::string name = std::string("[") + where + "]";
  Finished finished;
  try {
    finished = runProcess(command);
  } catch (const std::system_error& e) {
    throw graph_program_compilation_error(name +
                                          " needs a C++ compiler on this host; could not start " +
                                          std::string(e.what()) + ". Install one, or set CXX.");
  }
  if (finished.exit_code == 0) return;
  throw graph_program_compilation_error(name + " needs C++ that compiles; " + compiler +
                                        " said:\n" + finished.output);
}

}  // namespace ipujax::engine
