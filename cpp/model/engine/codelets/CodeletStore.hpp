#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace ipujax::engine {

/// Both throw file_load_error.
std::string readFile(const std::filesystem::path& path);
void writeFile(const std::filesystem::path& path, const std::string& text);

/// The folder that IPUJAX_TRUST_NATIVE_CODE names: codelets that processes of this user compiled,
/// kept for those that load executables with the same codelets. What runs is what lies there, never
/// what an executable brings: that only says which one (docs/decisions/0019).
class CodeletStore {
 public:
  /// None where the variable is not set. Throws where it names no folder, or one that others than
  /// the user may write to or replace.
  static std::optional<CodeletStore> open();

  /// Where a file is, links followed, if that is in the folder or below, and no one else may write
  /// to it. What is read there is trusted: the path itself may lead elsewhere meanwhile.
  std::optional<std::filesystem::path> trusted(const std::filesystem::path& file) const;

  /// The library compiled from this text, if there is one.
  std::optional<std::filesystem::path> find(const std::string& text) const;
  /// Keeps a library. Where the folder is full or not writable it stays as it was, with a warning.
  void add(const std::string& text, const std::filesystem::path& library) const;

 private:
  explicit CodeletStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
};

}  // namespace ipujax::engine
