#include "engine/codelets/LibraryCodelets.hpp"

#include <map>
#include <mutex>
#include <string_view>

#include "engine/codelets/CodeletStore.hpp"
#include "engine/codelets/Compiler.hpp"

namespace ipujax::engine {
namespace {

constexpr std::string_view kLibraries[] = {"popnn", "popops", "popsys"};

const CodeletFile& read(std::string_view library) {
  static std::mutex mutex;
  static auto& files = *new std::map<std::string_view, CodeletFile>();  // NOLINT: kept to the end
  const std::lock_guard lock(mutex);
  const auto known = files.find(library);
  if (known != files.end()) return known->second;
  const std::string name = std::string(library) + "_vertices.h";
  const std::string text = readFile(headerFolder() / "poplar" / "codelets" / name);
  return files.emplace(library, codeletsFromText(text, "")).first->second;
}

}  // namespace

const CodeletFile* libraryCodelets(const std::string& type) {
  for (const std::string_view library : kLibraries) {
    if (type.rfind(std::string(library) + "::", 0) != 0) continue;
    const CodeletFile& file = read(library);
    return findClass(file, type) ? &file : nullptr;
  }
  return nullptr;
}

}  // namespace ipujax::engine
