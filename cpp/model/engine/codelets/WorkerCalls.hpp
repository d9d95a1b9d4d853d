#pragma once
#include <string>

namespace ipujax::engine {

/// Preprocessed C++ in which assembly of supervisors that only starts workers and waits for them
/// (setzi of a codelet's symbol, runall, sync) is calls of poplar/codelets/workers.h, which the
/// text has to include. Other assembly calls a function that is defined nowhere, so that programs
/// with a vertex that needs it do not link and the others of its source run. Lines, and the
/// system's headers, stay as they are.
///
///     asm("runall %[f], %[base], 0" : : [f] "r"(entry), [base] "r"(this));
///     do { ::ipujax_workers::runAll((void*)(entry), (void*)(this)); } while (false);
std::string withWorkerCalls(const std::string& preprocessed);

/// The same without the attributes of supervisors and workers, which only the IPU's compiler knows.
std::string withoutContexts(const std::string& text);

/// A source whose text includes that header and has builtins, whichever file it is that uses them.
std::string withWorkersHeader(const std::string& source);

/// Whether a compiler or an assembler that knows no IPU is why a source was refused.
bool isOfTheDevice(const std::string& message);

/// Whether a source has assembly that names registers of an IPU. Its operands may be constants of
/// an IPU, too, which hosts do not have.
bool hasAssembly(const std::string& source);

/// The instruction whose assembly is why a linker failed; empty where it is something else.
std::string missingAssembly(const std::string& message);

}  // namespace ipujax::engine
