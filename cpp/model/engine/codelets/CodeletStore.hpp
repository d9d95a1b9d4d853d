#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace ipujax::engine {

/// Both throw file_load_error.
std::string readFile(const std::filesystem::path& path);
void writeFile(const std::filesystem::path& path, const std::string& text);

/// The folder that IPUJAX_TRUST_NATIVE_CODE names: codelets that processes of this user compiled,
/// kept for those that load executables with the same codelets. Only libraries from this folder
/// run, never code in an executable, which only says which one (docs/decisions/0019).
class CodeletStore {
 public:
  /// None if the variable is not set. Throws if it does not name a folder, or names one that anyone
  /// but the user may write to or replace.
  static std::optional<CodeletStore> open();

  /// The path of a file with links resolved, if that is in the folder or below, and no one else may
  /// write to it. Read this path: the given one may lead elsewhere by then.
  std::optional<std::filesystem::path> trusted(const std::filesystem::path& file) const;

  /// The library compiled from this text, if there is one.
  std::optional<std::filesystem::path> find(const std::string& text) const;
  /// Keeps a library. If the folder is full or not writable, it stays as it was, with a warning.
  void add(const std::string& text, const std::filesystem::path& library) const;

 private:
  explicit CodeletStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
};

}  // namespace ipujax::engine
