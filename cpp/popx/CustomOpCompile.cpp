#include "popx/CustomOpCompile.hpp"

#include "popx/Native.hpp"

namespace popx {

CustomOpLibrary compileCustomOps(const std::string& source, const std::string& flags) {
  const native::TemporaryFolder folder;
  const std::string from = (folder / "custom_op.cpp").string();
  const std::string to = (folder / "custom_op.so").string();
  native::writeFile(from, source);
  native::runCompiler("custom_op", {"-O2", "-shared", "-fPIC", from, "-o", to}, flags);
  native::hideConstructors(to);
  return CustomOpLibrary::load(to);
}

}  // namespace popx
