#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace ipujax::engine {

/// A folder for temporary files that is gone with the object. Throws file_load_error.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Where <poplar/Vertex.hpp> is: beside the extension, in the SDK folder of which this library is a
/// part, or in the source tree. Throws link_error where it is in none.
std::filesystem::path headerFolder();

/// Runs the host's C++ compiler ($CXX, or c++) on users' code, which finds the headers of Poplar.
/// Throws graph_program_compilation_error with what the compiler said.
/// `where`: the function that errors name; `arguments`: what it asks for; `flags`: what the user
/// added.
void runCompiler(const char* where, const std::vector<std::string>& arguments,
                 const std::string& flags);

/// The same, for objects that it compiled. Throws link_error with what the linker said.
void runLinker(const char* where, const std::vector<std::string>& arguments);

}  // namespace ipujax::engine
