#include "engine/codelets/VertexStore.hpp"

namespace ipujax::engine {

const CodeletClass* VertexStore::findClass(const std::string& type, std::size_t& file) const {
  const std::string base = type.substr(0, type.find('<'));
  for (file = 0; file < files.size(); ++file) {
    const auto& classes = files[file].found.classes;
    if (const auto it = classes.find(type); it != classes.end() && !it->second.is_template)
      return &it->second;
    if (const auto it = classes.find(base);
        it != classes.end() && it->second.is_template && base != type)
      return &it->second;
  }
  return nullptr;
}

std::shared_ptr<const CodeletLibrary> VertexStore::library(std::size_t file) {
  auto library = CodeletLibrary::compile(codeletUnit(files[file], types[file]), files[file].flags);
  libraries_[file] = library;
  return library;
}

}  // namespace ipujax::engine
