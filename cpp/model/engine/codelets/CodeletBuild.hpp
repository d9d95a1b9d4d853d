#pragma once
#include <filesystem>
#include <string>

#include "engine/Errors.hpp"
#include "engine/codelets/Compiler.hpp"

namespace ipujax::engine {

/// Compiles each source of a unit in `folder`, and links them to the library `result`. Throws
/// graph_program_compilation_error with the compiler's words, for example if a vertex writes to an
/// Input, and link_error if a function is not defined.
void buildCodelets(const std::string& unit, const std::string& flags, const TemporaryFolder& folder,
                   const std::filesystem::path& result);

/// Of the errors of two ways to compile one source, that of the way with fewer, which comes nearer:
/// the other has errors that only its way causes. The first's if both have equally many.
const graph_program_compilation_error& fewerErrors(const graph_program_compilation_error& first,
                                                   const graph_program_compilation_error& second);

/// The flags that compile a source as for an IPU, and whether it may compile only with them: it
/// names __IPU__, and its flags do not.
inline constexpr const char* kForIpu = " -D__IPU__=1 -D__IPU_ARCH_VERSION__=2";
bool mayBeForIpu(const std::string& text, const std::string& flags);

/// Whether a source, or the first of a unit, counts the issue slots that it takes.
bool countsCycles(const std::string& source);
/// The unit with all sources made to count.
std::string withCycles(const std::string& unit);

/// A unit whose halves round as `mode` says: the bits of poplar/codelets/rounded_half.h.
std::string withHalves(const std::string& unit, unsigned mode);

}  // namespace ipujax::engine
