#pragma once
#include <cstdint>

namespace poplar {

/// What counts a hardware loop: at most 4095 iterations.
using rptsize_t = std::uint16_t;

}  // namespace poplar

// Codelets name it without its namespace, too. Those that declare their own have that one alone.
#ifndef IPUJAX_OWN_RPTSIZE
using poplar::rptsize_t;
#endif
