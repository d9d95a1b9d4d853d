#pragma once
#include <string>

#include "popx/CustomOp.hpp"

namespace popx {

/// Compiles the source of a library against the headers of this build, and loads it. Throws
/// graph_program_compilation_error and link_error. Only in the IPU Model's own build.
CustomOpLibrary compileCustomOps(const std::string& source, const std::string& flags);

}  // namespace popx
