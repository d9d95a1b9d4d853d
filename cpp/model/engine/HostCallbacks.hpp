#pragma once
#include "support/HostCallbacks.hpp"

namespace ipujax::engine {

using runtime::HostArray;

/// Calls from running programs to the host.
class HostCallbacks : public runtime::HostCallbacks {};

}  // namespace ipujax::engine
