#include "popx/SdkFolder.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "poplar/Version.hpp"
#include "poplar/exceptions.hpp"

namespace popx {
namespace {

namespace fs = std::filesystem;

/// The folder of libpoplar.so.
fs::path libraries() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&poplar::versionString), &info) == 0 || !info.dli_fname)
    throw poplar::link_error(
        "[sdk] needs Poplar as a shared library; found none in this process. Build against an SDK "
        "whose lib/ has libpoplar.so.");
  return fs::absolute(info.dli_fname).parent_path();
}

}  // namespace

std::string sdkFolder() { return libraries().parent_path().string(); }

void showSdkLibraries() {
  for (const char* name : {"poplar", "poputil", "popops", "poplin", "popnn", "poprand", "popsparse",
                           "popfloat", "popsolver", "gcl", "pvti"}) {
    const fs::path file = libraries() / ("lib" + std::string(name) + ".so");
    if (fs::exists(file)) dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
}

}  // namespace popx
