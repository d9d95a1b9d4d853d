#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/VertexAbi.hpp"
#include "engine/codelets/CodeletParser.hpp"

namespace ipujax::engine {

/// A self-contained file of user codelets: with its local includes in the text, so that it needs no
/// other files than the compiler's own.
struct CodeletFile {
  std::string text;
  std::string flags;
  CodeletSource found;
};

/// Reads, preprocesses and inspects codelets with the host's C++ compiler ($CXX, or c++). Throws
/// file_load_error if a file cannot be read and graph_program_compilation_error, with the
/// compiler's output, if it is not valid C++.
CodeletFile readCodelets(const std::string& path, const std::string& flags);
CodeletFile codeletsFromText(const std::string& text, const std::string& flags,
                             const std::string& path = "codelets.cpp");

/// The same for a text that `readCodelets` gave.
CodeletFile inspectCodelets(std::string text, const std::string& flags);

/// The class of a vertex type ("Foo<float>") in the file, or null.
const CodeletClass* findClass(const CodeletFile& file, const std::string& type);

/// The file's text followed by the tables of `types`: what is compiled, and stored in executables.
std::string codeletUnit(const CodeletFile& file, const std::vector<std::string>& types);

/// A unit with the sources of more files, which define what its own declares. Each is compiled with
/// its own flags.
std::string withSources(const std::string& unit, const std::vector<const CodeletFile*>& others);

/// All that a compiled unit depends on except the compiler: source, flags, versions, processor.
std::string libraryKey(const std::string& unit, const std::string& flags);
/// Whether libraryKey could give this key in this process: for the same version and processor.
bool isLibraryKey(const std::string& key);
/// The library compiled from a unit. Throws as CodeletLibrary::compile.
std::string nativeCode(const std::string& unit, const std::string& flags);

/// A compiled unit. Loaded once for each text in a process, and kept to its end.
class CodeletLibrary {
 public:
  ~CodeletLibrary();
  CodeletLibrary(const CodeletLibrary&) = delete;
  CodeletLibrary& operator=(const CodeletLibrary&) = delete;

  /// Throws unknown_vertex_type.
  const IpujaxCodelet& codelet(const std::string& type) const;
  /// Null where the unit was compiled without the type.
  const IpujaxCodelet* find(const std::string& type) const;
  /// Null where the codelets use no registers.
  IpujaxEnter enter() const { return enter_; }
  /// Null where the codelets do not count their issue slots.
  const IpujaxCounter* counter() const { return counter_; }

  /// Whether its workers may wait for one another.
  bool takesTurns() const { return turns_ != nullptr; }
  void giveTurns(const IpujaxTurns* turns) const;
  /// The memory that its workers share besides the tensors of their vertex.
  const std::vector<IpujaxRange>& variables() const { return variables_; }
  /// The registers of the worker that this thread runs; empty if the codelets use none.
  IpujaxRange registers() const {
    return registers_ ? registers_() : IpujaxRange{nullptr, nullptr};
  }
  /// The two words of that worker's generator; null if the codelets use no registers.
  std::uint64_t* random() const { return random_ ? random_() : nullptr; }
  /// Blocks of code that this thread runs before it next asks for turns.
  std::uint64_t& unseen() const { return *unseen_(); }

  /// Compiles a unit that the user of this process gives. Throws graph_program_compilation_error
  /// with the compiler's words, and link_error for undefined functions. The library is kept for
  /// other processes in the user's CodeletStore, if there is one.
  static std::shared_ptr<const CodeletLibrary> compile(const std::string& unit,
                                                       const std::string& flags);
  /// Loads native code that the user trusts, for `compile` and `find`.
  static void adopt(const std::string& key, const std::string& code);
  /// The library that an executable names, compiled by this process or kept in the user's
  /// CodeletStore. Throws link_error for any other: native code runs only if the user trusts it,
  /// and is never compiled from a loaded executable.
  static std::shared_ptr<const CodeletLibrary> find(const std::string& unit,
                                                    const std::string& flags);

 private:
  static std::shared_ptr<const CodeletLibrary> known(const std::string& text);
  explicit CodeletLibrary(const std::string& file);
  void construct() const;
  void* handle_ = nullptr;
  const IpujaxCodelet* codelets_ = nullptr;
  unsigned count_ = 0;
  IpujaxEnter enter_ = nullptr;
  const IpujaxCounter* counter_ = nullptr;
  IpujaxRange (*registers_)() = nullptr;
  IpujaxRandom random_ = nullptr;
  const IpujaxTurns** turns_ = nullptr;
  std::uint64_t* (*unseen_)() = nullptr;
  std::vector<IpujaxRange> variables_;
};

}  // namespace ipujax::engine
