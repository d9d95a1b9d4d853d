#pragma once
#include <string>

namespace ipujax::engine {

/// Preprocessed C++ in which assembly of supervisors that only starts workers and waits for them
/// (setzi of a codelet's symbol, runall, sync) becomes calls of poplar/codelets/workers.h, which
/// the text has to include. Other assembly becomes a call of an undefined function: programs with a
/// vertex that needs it do not link, and the other vertices of its source run. Line numbers and
/// system headers do not change.
///
///     asm("runall %[f], %[base], 0" : : [f] "r"(entry), [base] "r"(this));
///     do { ::ipujax_workers::runAll((void*)(entry), (void*)(this)); } while (false);
std::string withWorkerCalls(const std::string& preprocessed);

/// The text without the attributes of supervisors and workers, which only the IPU's compiler knows.
std::string withoutContexts(const std::string& text);

/// The source with that header and the builtins, whichever of the files it includes uses them.
std::string withWorkersHeader(const std::string& source);

/// Whether a source was refused because the compiler or assembler does not know the IPU.
bool isOfTheDevice(const std::string& message);

/// Whether a source has assembly that names registers of an IPU. Its operands may be constants of
/// an IPU, too, which hosts do not have.
bool hasAssembly(const std::string& source);

/// The instruction whose assembly made the linker fail; empty if it failed for another reason.
std::string missingAssembly(const std::string& message);

}  // namespace ipujax::engine
