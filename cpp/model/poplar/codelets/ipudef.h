#pragma once
#include "poplar/HalfFloat.hpp"

// The short vectors without a namespace.
#ifndef IPUJAX_OWN_VECTORS
#define IPUJAX_BY_NAME(name) using ipujax_vectors::name;
IPUJAX_SHORT_VECTORS(IPUJAX_BY_NAME)
#undef IPUJAX_BY_NAME
#endif
