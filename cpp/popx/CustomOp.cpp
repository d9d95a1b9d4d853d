#include "popx/CustomOp.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "poplar/exceptions.hpp"
#include "popx/CustomOpGraph.hpp"
#include "popx/CustomOpInterface.hpp"

namespace popx {
namespace {

using custom_op::Aliases;
using custom_op::Indices;

constexpr int kNewestLevel = 5;

std::string lastError() {
  const char* reason = dlerror();
  return reason ? reason : "no reason given";
}

/// Whether a library file is cut off before the end of a segment: the loader would then crash.
bool isCut(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::uint64_t>(std::max<std::streamoff>(file.tellg(), 0));
  ElfW(Ehdr) header{};
  file.seekg(0);
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  if (!file || std::string_view(reinterpret_cast<char*>(header.e_ident), SELFMAG) != ELFMAG)
    return false;  // the loader reports what it is instead
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof(segment)));
    file.read(reinterpret_cast<char*>(&segment), sizeof(segment));
    if (!file || segment.p_filesz > size || segment.p_offset > size - segment.p_filesz) return true;
  }
  return false;
}

}  // namespace

CustomOpLibrary::CustomOpLibrary(const std::string& file) {
  custom_op::showPoplar();
  if (isCut(file))
    throw poplar::link_error("[custom_op] needs a whole library; got " + file +
                             ", whose end is missing. Compile it again.");
  handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_)
    throw poplar::link_error(
        "[custom_op] needs a library that can be loaded; got: " + lastError() +
        ". Compile it against the headers in the folder that ipujax.get_include() gives.");
  custom_op::called("a constructor of the library", [&] { custom_op::construct(handle_); });
  if (const auto* level = static_cast<const std::int32_t*>(find("custom_op_api_level")))
    level_ = *level;
  if (level_ < 0 || level_ > kNewestLevel)
    throw poplar::link_error("[custom_op] needs custom_op_api_level from 0 to " +
                             std::to_string(kNewestLevel) + "; got " + std::to_string(level_) +
                             ". Use a level whose interface the library has.");
}

CustomOpLibrary CustomOpLibrary::load(const std::string& path) { return CustomOpLibrary(path); }

void* CustomOpLibrary::find(const std::string& function) const {
  return dlsym(handle_, function.c_str());
}

bool CustomOpLibrary::has(const std::string& function) const { return find(function) != nullptr; }

void* CustomOpLibrary::required(const std::string& function) const {
  if (void* found = find(function)) return found;
  throw poplar::link_error("[custom_op] needs the function " + function +
                           " in the library; found none. Declare it extern \"C\".");
}

CustomOpMetadata CustomOpLibrary::metadata(const std::string& name, unsigned num_inputs) const {
  CustomOpMetadata m;
  const std::string function = name + "_metadata";
  void* const found = find(function);
  if (!found) return m;
  Indices replica_identical;
  bool is_hashable = false;
  std::uint32_t num_inplace = 0;
  custom_op::called(function, [&] {
    if (level_ >= 5) {
      reinterpret_cast<custom_op::Metadata5*>(found)(m.allocating_inputs, replica_identical,
                                                     m.aliases, m.is_elementwise, m.is_stateless,
                                                     is_hashable, num_inputs);
    } else if (level_ >= 3) {
      reinterpret_cast<custom_op::Metadata3*>(found)(m.allocating_inputs, m.aliases,
                                                     m.is_elementwise, m.is_stateless, is_hashable,
                                                     num_inputs);
    } else if (level_ >= 1) {
      reinterpret_cast<custom_op::Metadata1*>(found)(m.allocating_inputs, num_inplace,
                                                     m.is_elementwise, m.is_stateless, num_inputs);
    } else {
      reinterpret_cast<custom_op::Metadata0*>(found)(m.allocating_inputs, num_inplace,
                                                     m.is_elementwise, num_inputs);
    }
  });
  for (std::int64_t i = 0; i < num_inplace; ++i) m.aliases.emplace(i, i);
  return m;
}

void CustomOpLibrary::callOnHost(const std::string& name, const std::vector<const void*>& inputs,
                                 const std::vector<std::uint32_t>& elements,
                                 const std::vector<void*>& outputs,
                                 const std::string& attributes) const {
  auto* const function = reinterpret_cast<custom_op::Callback*>(required(name));
  custom_op::called(name, [&] { function(inputs, elements, outputs, attributes, name); });
}

}  // namespace popx
