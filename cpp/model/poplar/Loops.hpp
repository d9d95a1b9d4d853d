#pragma once
#include <cstdint>

namespace poplar {

/// Counter of a hardware loop: at most 4095 iterations.
using rptsize_t = std::uint16_t;

}  // namespace poplar

// Codelets also use it without its namespace, unless they declare their own.
#ifndef IPUJAX_OWN_RPTSIZE
using poplar::rptsize_t;
#endif
