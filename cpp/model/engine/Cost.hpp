#pragma once
#include <cstdint>

#include "engine/VertexMemory.hpp"

namespace ipujax::engine {

/// What one step costs on the modelled IPU. Cycles are tile clock cycles; a step is one or more
/// compute sets, each preceded by its exchange, so the phases add up. Bytes are bytes.
struct Cost {
  double compute_cycles = 0;       ///< slowest tile, launch constants included
  double mean_compute_cycles = 0;  ///< mean over all tiles of the device (idle tiles count as 0)
  double exchange_cycles = 0;      ///< slowest tile's receive (or send) time
  double sync_cycles = 0;          ///< one on-chip sync per compute set and per exchange
  /// Parts of exchange_cycles and sync_cycles in all but the first iteration of loops inside the
  /// step; these iterations run the code of the first.
  double repeated_exchange_cycles = 0;
  double repeated_sync_cycles = 0;
  double link_cycles = 0;                ///< busiest link to other IPUs, or to streaming memory
  double host_cycles = 0;                ///< link to the host: streams and callbacks
  double exchange_bytes = 0;             ///< total received over all tiles
  double link_bytes = 0;                 ///< received over these links, per replica
  double host_bytes = 0;                 ///< over the link to the host, both ways, per replica
  double flops = 0;                      ///< arithmetic operations the user asked for
  std::uint64_t temporary_bytes = 0;     ///< worst tile, while the step runs
  std::uint64_t rearranged_bytes = 0;    ///< of temporary_bytes: operands in the vertices' order
  std::uint64_t received_bytes = 0;      ///< of temporary_bytes: from other tiles
  std::uint64_t vertex_state_bytes = 0;  ///< worst tile, always live
  std::uint64_t code_bytes = 0;          ///< per tile, always live; shared by steps with one kernel
  VertexMemory vertex_memory;            ///< of the phase with these temporaries

  double cycles() const {
    return compute_cycles + exchange_cycles + sync_cycles + link_cycles + host_cycles;
  }
  /// If `bytes` exceeds temporary_bytes, replaces it together with its two parts.
  void raiseTemporaries(std::uint64_t bytes, std::uint64_t rearranged, std::uint64_t received);
  /// Sequential composition: cycles and bytes moved add; temporaries do not live at one time.
  Cost& operator+=(const Cost& other);
  friend Cost operator+(Cost lhs, const Cost& rhs) { return lhs += rhs; }
};

}  // namespace ipujax::engine
