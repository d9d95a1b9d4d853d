#pragma once
// The whole of PJRT C API 0.112 as jaxlib 0.10 uses it; one file per object under abi/.
#include "abi/api.hpp"
#include "abi/layouts.hpp"
#include "abi/memory_descriptions.hpp"
#include "abi/profiler.hpp"
#include "abi/shardings.hpp"
