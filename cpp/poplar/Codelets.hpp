#pragma once
#include <memory>
#include <string>
#include <vector>

#include "poplar/CodeletParser.hpp"
#include "poplar/VertexAbi.hpp"

namespace poplar {

/// A file of user codelets as it travels: with its local includes in the text, so that it needs no
/// other file but the compiler's own.
struct CodeletFile {
  std::string text;
  std::string flags;
  CodeletSource found;
};

/// Reads, preprocesses and inspects codelets with the host's C++ compiler ($CXX, or c++). Throws
/// file_load_error where a file cannot be read and graph_program_compilation_error, with the
/// compiler's output, where it is no C++.
CodeletFile readCodelets(const std::string& path, const std::string& flags);
CodeletFile codeletsFromText(std::string text, const std::string& flags,
                             const std::string& path = "codelets.cpp");

/// The file's text followed by the tables of `types`: what is compiled, and stored in executables.
std::string codeletUnit(const CodeletFile& file, const std::vector<std::string>& types);

/// A compiled unit. Loaded once for each text in a process and kept until the last user is gone.
class CodeletLibrary {
 public:
  ~CodeletLibrary();
  CodeletLibrary(const CodeletLibrary&) = delete;
  CodeletLibrary& operator=(const CodeletLibrary&) = delete;

  /// Throws unknown_vertex_type.
  const IpujaxCodelet& find(const std::string& type) const;

  static std::shared_ptr<const CodeletLibrary> load(const std::string& unit,
                                                    const std::string& flags);

 private:
  explicit CodeletLibrary(const std::string& file);
  void* handle_ = nullptr;
  const IpujaxCodelet* codelets_ = nullptr;
  unsigned count_ = 0;
};

}  // namespace poplar
