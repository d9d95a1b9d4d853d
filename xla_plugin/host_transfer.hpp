#pragma once
#include "pjrt_abi.hpp"

namespace ipujax::plugin::host_transfer {

/// Arrays on their way in, out and between devices: BufferFromHostBuffer, ToHostBuffer,
/// CopyToMemory and CopyToDevice.
void bind(PJRT_Api& api);

}  // namespace ipujax::plugin::host_transfer
