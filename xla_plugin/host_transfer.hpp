#pragma once
#include "pjrt_abi.hpp"

namespace ipujax::plugin::host_transfer {

/// Transfers to, from and between devices: BufferFromHostBuffer, ToHostBuffer, CopyToMemory and
/// CopyToDevice.
void bind(PJRT_Api& api);

}  // namespace ipujax::plugin::host_transfer
