#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace ipujax::engine {

/// A folder for temporary files that is removed with the object. Throws file_load_error.
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
/// part, or in the source tree. Throws link_error if it is in none of these.
std::filesystem::path headerFolder();

/// Runs the host's C++ compiler ($CXX, or c++) on users' code, which finds the headers of Poplar.
/// Throws graph_program_compilation_error with the compiler's output.
/// `where`: the function that errors name; `arguments`: the flags it asks for; `flags`: those that
/// the user added.
void runCompiler(const char* where, const std::vector<std::string>& arguments,
                 const std::string& flags);

/// The same for linking objects that it compiled. Throws link_error with the linker's output.
void runLinker(const char* where, const std::vector<std::string>& arguments);

}  // namespace ipujax::engine
