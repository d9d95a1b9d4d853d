#pragma once
#include "pjrt_abi.hpp"

namespace ipujax::plugin::shardings {

/// The Shardings extension, to be chained into the API. jaxlib asks it how a program's parameters
/// and results are spread over devices.
PJRT_Extension_Base* extension();

}  // namespace ipujax::plugin::shardings
