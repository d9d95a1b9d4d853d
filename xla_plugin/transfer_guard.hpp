#pragma once
#include <optional>

namespace ipujax::plugin::transfer_guard {

/// Whether JAX's guard of transfers to the host is anything but "allow". jaxlib skips the guard for
/// buffers on the host, where the model keeps all; they say so only if no guard is set.
void setForProcess(bool guarded);
void setForThread(std::optional<bool> guarded);  ///< none: as the process
bool active();                                   ///< on this thread

}  // namespace ipujax::plugin::transfer_guard
