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

/// A library for hosts like the one that popc ran on.
struct ArchivedLibrary {
  std::string key;  ///< libraryKey of the unit it was compiled from
  std::string code;
};

/// The content of a .gp file of the model, sealed with a checksum. Sources are compiled where they
/// are loaded; native code is run only where the user trusts the file (docs/decisions/0019).
struct CodeletArchive {
  std::vector<ArchivedSource> sources;
  std::vector<ArchivedLibrary> libraries;
};

std::string writeArchive(const CodeletArchive& archive);

/// Throws file_load_error for content that `writeArchive` did not write. `path` is named in errors.
CodeletArchive readArchive(const std::string& content, const std::string& path);

}  // namespace ipujax::engine
