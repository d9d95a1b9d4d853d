#pragma once
#include <string>
#include <vector>

namespace ipujax::engine {

/// A source of codelets with the compiler's flags, as popc got it.
struct ArchivedSource {
  std::string name;
  std::string text;
  std::string flags;
};

/// The content of a .gp file of the model: sources, sealed with a checksum. There is no native code
/// in it: what runs is compiled where it is loaded.
std::string writeArchive(const std::vector<ArchivedSource>& sources);

/// Throws file_load_error for what `writeArchive` did not write. `path` is named in errors.
std::vector<ArchivedSource> readArchive(const std::string& content, const std::string& path);

}  // namespace ipujax::engine
