#include "engine/codelets/VertexStore.hpp"

#include <algorithm>
#include <regex>
#include <utility>

#include "engine/Errors.hpp"
#include "engine/codelets/CodeletBuild.hpp"

namespace ipujax::engine {
namespace {

/// Functions and variables that a linker finds undefined, without their namespaces and parameters.
std::set<std::string> undefinedNames(const std::string& linker_output) {
  static const std::regex kName(
      R"((?:undefined reference to|undefined symbol:)\s*[`'"]?([^\n('"<]*))");
  std::set<std::string> names;
  for (std::sregex_iterator at(linker_output.begin(), linker_output.end(), kName), end; at != end;
       ++at) {
    const std::string qualified = (*at)[1];
    const std::size_t colons = qualified.rfind(':');
    names.insert(qualified.substr(colons == std::string::npos ? 0 : colons + 1));
  }
  return names;
}

bool hasAnyName(const std::string& text, const std::set<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return !name.empty() && text.find(name) != std::string::npos;
  });
}

}  // namespace

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

std::vector<std::string> VertexStore::typeNames() const {
  std::set<std::string> names;
  for (const auto& of_file : types) names.insert(of_file.begin(), of_file.end());
  for (const CodeletFile& file : files) {
    for (const auto& [name, found] : file.found.classes) {
      const auto instance = names.lower_bound(name + "<");
      if (!found.is_template)
        names.insert(name);
      else if (instance == names.end() || !instance->starts_with(name + "<"))
        names.insert(name + "<...>");
    }
  }
  return {names.begin(), names.end()};
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
  const auto linked = linked_.find(file);
  if (linked == linked_.end()) return unit;
  std::vector<const CodeletFile*> others;
  for (const std::size_t other : linked->second) others.push_back(&files[other]);
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
    linked_[file];
  }
}

std::shared_ptr<const CodeletLibrary> VertexStore::compiled(
    std::size_t file, const std::vector<std::string>& of_types) {
  units_[file] = unitOf(file, of_types);
  return libraries_[file] = CodeletLibrary::compile(units_[file], files[file].flags);
}

bool VertexStore::linkMore(std::size_t file, const std::string& linker_output) {
  const std::set<std::string> missing = undefinedNames(linker_output);
  std::set<std::size_t>& linked = linked_[file];
  const auto link = [&](const auto& wanted) {
    const std::size_t before = linked.size();
    for (std::size_t other = 0; other < files.size(); ++other)
      if (files[other].text != files[file].text && wanted(files[other].text)) linked.insert(other);
    return linked.size() > before;
  };
  return link([&](const std::string& text) { return hasAnyName(text, missing); }) ||
         link([](const std::string&) { return true; });
}

std::shared_ptr<const CodeletLibrary> VertexStore::library(std::size_t file) {
  if (linked_.count(file) == 0) {
    try {
      return compiled(file, types[file]);
    } catch (const link_error&) {
      linked_[file];
    }
  }
  // Types that no vertex has may call functions that only an IPU's assembly defines.
  std::vector<std::string> used;
  for (const std::string& type : types[file]) {
    const auto has = [&](const VertexRecord& v) { return v.file == file && v.type == type; };
    if (std::any_of(vertices.begin(), vertices.end(), has)) used.push_back(type);
  }
  while (true) {
    try {
      return compiled(file, used);
    } catch (const link_error& error) {
      if (!linkMore(file, error.output)) throw;
    }
  }
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
      return nullptr;  // building the engine reports the error
    }
  };
  const CodeletLibrary* const library = compiled();
  const IpujaxCodelet* const codelet = library ? library->find(vertex.type) : nullptr;
  for (unsigned i = 0; codelet && i < codelet->num_fields; ++i)
    if (name == codelet->fields[i].name) return &codelet->fields[i];
  return nullptr;
}

}  // namespace ipujax::engine
