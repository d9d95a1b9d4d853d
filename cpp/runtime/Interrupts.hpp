#pragma once
#include <cstdint>

namespace ipujax::runtime {

/// Ctrl-C, for programs that wait for the host. Python's handler only notes the signal, and raises
/// KeyboardInterrupt when the main thread, which may wait for such a program, runs Python again.
namespace interrupts {

/// From now on counts SIGINT, then calls the handler that is installed. Does nothing where none is.
void watch();
/// How many came since the process began.
std::uint64_t count();

}  // namespace interrupts
}  // namespace ipujax::runtime
