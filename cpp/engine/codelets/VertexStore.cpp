#include "engine/codelets/VertexStore.hpp"

#include <algorithm>
#include <utility>

#include "engine/Errors.hpp"
#include "engine/codelets/CodeletBuild.hpp"

namespace ipujax::engine {

void VertexStore::add(CodeletFile file) {
  types.push_back(file.found.types);
  files.push_back(std::move(file));
  if (!types.back().empty()) check(files.size() - 1);
}

const CodeletClass* VertexStore::findClass(const std::string& type, std::size_t& file) const {
  for (file = 0; file < files.size(); ++file) {
    if (const CodeletClass* found = engine::findClass(files[file], type)) return found;
  }
  return nullptr;
}

bool VertexStore::addForIpu(const std::string& type) {
  const std::string base = type.substr(0, type.find('<'));
  const std::size_t scope = base.rfind(':');
  const std::string name = scope == std::string::npos ? base : base.substr(scope + 1);
  for (const CodeletFile& each : std::vector<CodeletFile>(files)) {
    if (!mayBeForIpu(each.text, each.flags) || each.text.find(name) == std::string::npos) continue;
    CodeletFile file;
    try {
      file = inspectCodelets(each.text, each.flags + kForIpu);
    } catch (const graph_program_compilation_error&) {
      continue;  // the type is not known to be there
    }
    if (!engine::findClass(file, type)) continue;
    add(std::move(file));
    return true;
  }
  return false;
}

std::string VertexStore::unitOf(std::size_t file, const std::vector<std::string>& of_types) const {
  const std::string unit = codeletUnit(files[file], of_types);
  if (linked_.count(file) == 0) return unit;
  std::vector<std::string> others;
  for (std::size_t i = 0; i < files.size(); ++i)
    if (files[i].text != files[file].text) others.push_back(files[i].text);
  return withSources(unit, others);
}

std::string VertexStore::unit(std::size_t file) const { return units_.at(file); }

std::string VertexStore::unit(std::size_t file, unsigned mode) const {
  return mode == 0 ? unit(file) : withHalves(unit(file), mode);
}

std::shared_ptr<const CodeletLibrary> VertexStore::rounding(std::size_t file, unsigned mode) {
  const auto plain = library(file);
  if (mode == 0) return plain;
  try {
    return CodeletLibrary::compile(unit(file, mode), files[file].flags);
  } catch (const graph_program_compilation_error& e) {
    throw graph_program_compilation_error(std::string(e.what()) +
                                          "It compiles for halves that round to nearest. Change "
                                          "what needs the compiler's own half, or "
                                          "add the vertex where stochastic rounding is off.");
  }
}

void VertexStore::check(std::size_t file) {
  try {
    libraries_[file] = CodeletLibrary::compile(unitOf(file, types[file]), files[file].flags);
  } catch (const link_error&) {
    linked_.insert(file);
  }
}

std::shared_ptr<const CodeletLibrary> VertexStore::library(std::size_t file) {
  const auto compiled = [&](const std::vector<std::string>& of_types) {
    units_[file] = unitOf(file, of_types);
    return libraries_[file] = CodeletLibrary::compile(units_[file], files[file].flags);
  };
  if (linked_.count(file) == 0) {
    try {
      return compiled(types[file]);
    } catch (const link_error&) {
      linked_.insert(file);
    }
  }
  // Types that no vertex has may call functions that only an IPU's assembly defines.
  std::vector<std::string> used;
  for (const std::string& type : types[file]) {
    const auto has = [&](const VertexRecord& v) { return v.file == file && v.type == type; };
    if (std::any_of(vertices.begin(), vertices.end(), has)) used.push_back(type);
  }
  return compiled(used);
}

const IpujaxField* VertexStore::findField(const VertexRecord& vertex, const std::string& name,
                                          bool compile) {
  const auto compiled = [&]() -> const CodeletLibrary* {
    const auto found = libraries_.find(vertex.file);
    if (found != libraries_.end() && found->second->find(vertex.type)) return found->second.get();
    if (!compile) return nullptr;
    try {
      return library(vertex.file).get();
    } catch (const poplar_error&) {
      return nullptr;  // building the engine says what is wrong
    }
  };
  const CodeletLibrary* const library = compiled();
  const IpujaxCodelet* const codelet = library ? library->find(vertex.type) : nullptr;
  for (unsigned i = 0; codelet && i < codelet->num_fields; ++i)
    if (name == codelet->fields[i].name) return &codelet->fields[i];
  return nullptr;
}

}  // namespace ipujax::engine
