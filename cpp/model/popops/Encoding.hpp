#pragma once
#include "popops/EncodingConstants.hpp"
#include "popops/Iota.hpp"                  // iota
#include "popops/OneHot.hpp"                // encodeOneHot
#include "popops/SelectScalarFromRows.hpp"  // selectScalarFromRows
