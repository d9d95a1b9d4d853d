#pragma once
#include "support/HostCallbacks.hpp"

namespace ipujax::engine {

using runtime::HostArray;

/// The host as running programs call it.
class HostCallbacks : public runtime::HostCallbacks {};

}  // namespace ipujax::engine
