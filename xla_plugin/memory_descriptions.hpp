#pragma once
#include "pjrt_abi.hpp"

namespace ipujax::plugin::memory_descriptions {

/// The MemoryDescriptions extension, to be chained into the API: the memories of the devices of a
/// topology. Without it, a sharding over such devices could name no memory.
PJRT_Extension_Base* extension(PJRT_Extension_Base* next);

}  // namespace ipujax::plugin::memory_descriptions
