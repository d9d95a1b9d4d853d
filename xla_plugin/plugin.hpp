#pragma once
#include "pjrt_abi.hpp"

namespace ipujax::plugin::plugin_entries {

/// PJRT_Plugin_*: what the plugin says about itself before there is a client.
void bind(PJRT_Api& api);

}  // namespace ipujax::plugin::plugin_entries
