#include "engine/codelets/LibraryCodelets.hpp"

#include <map>
#include <mutex>
#include <string_view>

#include "engine/codelets/CodeletStore.hpp"
#include "engine/codelets/Compiler.hpp"

namespace ipujax::engine {
namespace {

/// The files of libraries: several of one, so that a program compiles those of its vertices alone.
struct LibraryFile {
  std::string_view library, name;
};
constexpr LibraryFile kFiles[] = {
    {"popnn", "popnn_vertices.h"},   {"popnn", "popnn_nonlinearity_vertices.h"},
    {"popops", "popops_vertices.h"}, {"popops", "popops_elementwise_vertices.h"},
    {"popsys", "popsys_vertices.h"},
};

const CodeletFile& read(std::string_view name) {
  static std::mutex mutex;
  static auto& files = *new std::map<std::string_view, CodeletFile>();  // NOLINT: kept to the end
  const std::lock_guard lock(mutex);
  const auto known = files.find(name);
  if (known != files.end()) return known->second;
  const std::string text = readFile(headerFolder() / "poplar" / "codelets" / name);
  return files.emplace(name, codeletsFromText(text, "")).first->second;
}

}  // namespace

const CodeletFile* libraryCodelets(const std::string& type) {
  for (const auto& [library, name] : kFiles) {
    if (type.rfind(std::string(library) + "::", 0) != 0) continue;
    const CodeletFile& file = read(name);
    if (findClass(file, type)) return &file;
  }
  return nullptr;
}

}  // namespace ipujax::engine
