#pragma once
#include <optional>

namespace ipujax::plugin::transfer_guard {

/// JAX's guard of transfers to the host, as far as it is anything but "allow". jaxlib skips it for
/// buffers that lie on the host, as the model's all do: they say so only where no guard is set.
void setForProcess(bool guarded);
void setForThread(std::optional<bool> guarded);  ///< none: as the process
bool active();                                   ///< on this thread

}  // namespace ipujax::plugin::transfer_guard
