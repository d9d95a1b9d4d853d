#include "engine/codelets/LibraryCodelets.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "engine/codelets/CodeletStore.hpp"
#include "engine/codelets/Compiler.hpp"

namespace ipujax::engine {
namespace {

/// The files of libraries. One library has several, so that programs compile only those they use.
struct LibraryFile {
  std::string_view library, name;
};
constexpr LibraryFile kFiles[] = {
    {"poplin", "vertices.h"},
    {"popnn", "vertices.h"},
    {"popnn", "nonlinearity_vertices.h"},
    {"popops", "vertices.h"},
    {"popops", "elementwise_vertices.h"},
    {"popops", "broadcast_vertices.h"},
    {"popops", "scaled_vertices.h"},
    {"popops", "slice_vertices.h"},
    {"popops", "transpose_vertices.h"},
    {"popops", "reduce_vertices.h"},
    {"popops", "row_vertices.h"},
    {"popops", "sort_vertices.h"},
    {"poprand", "vertices.h"},
    {"popsparse", "vertices.h"},
    {"popsys", "vertices.h"},
};

/// A file, which is inspected only when one of its classes is asked for: that takes a compiler.
class File {
 public:
  explicit File(const LibraryFile& file)
      : text_(readFile(headerFolder() / file.library / "codelets" / file.name)) {}

  bool names(const std::string& class_name) const {
    const std::string declared = "class " + class_name;
    return text_.find(declared + " ") != std::string::npos ||
           text_.find(declared + "\n") != std::string::npos;
  }
  const CodeletFile& inspected() {
    if (!inspected_) inspected_ = codeletsFromText(text_, "");
    return *inspected_;
  }

 private:
  std::string text_;
  std::optional<CodeletFile> inspected_;
};

}  // namespace

const CodeletFile* libraryCodelets(const std::string& type) {
  static std::mutex mutex;
  static auto& files = *new std::map<const LibraryFile*, File>();  // NOLINT: kept to the end
  const std::string full = type.substr(0, type.find('<'));
  const std::size_t scope = full.find("::");
  if (scope == std::string::npos) return nullptr;
  const std::lock_guard lock(mutex);
  for (const LibraryFile& each : kFiles) {
    if (each.library != std::string_view(full).substr(0, scope)) continue;
    File& file = files.try_emplace(&each, each).first->second;
    if (!file.names(full.substr(scope + 2))) continue;
    const CodeletFile& found = file.inspected();
    if (findClass(found, type)) return &found;
  }
  return nullptr;
}

}  // namespace ipujax::engine
