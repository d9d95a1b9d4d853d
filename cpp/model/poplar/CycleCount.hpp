#pragma once
#include <vector>

#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/SyncType.hpp"

namespace poplar {

/// Source: Poplar API reference, CycleCount.hpp. Tiles have a 64-bit cycle counter; the model
/// counts the cycles that it estimates. Results are UNSIGNED_INT [2], lower word first. On several
/// IPUs the count adds up the steps of all IPUs, even those that run at the same time; a profile
/// gives the time they take together.

/// Replaces `prog` with a program that also counts its cycles; returns the count. Steps added to
/// `prog` later are not counted.
Tensor cycleCount(Graph& graph, program::Sequence& prog, unsigned tile, SyncType syncType,
                  const DebugContext& debugContext = {});
inline Tensor cycleCount(Graph& graph, program::Sequence& prog, unsigned tile,
                         const DebugContext& debugContext = {}) {
  return cycleCount(graph, prog, tile, SyncType::INTERNAL, debugContext);
}

/// Counts the cycles from the start of the run to this point in `prog`.
Tensor cycleStamp(Graph& graph, program::Sequence& prog, unsigned tile, SyncType syncType,
                  const DebugContext& debugContext = {});
inline Tensor cycleStamp(Graph& graph, program::Sequence& prog, unsigned tile,
                         const DebugContext& debugContext = {}) {
  return cycleStamp(graph, prog, tile, SyncType::INTERNAL, debugContext);
}

/// The same for each of `tiles`, in their order.
std::vector<Tensor> cycleStamp(Graph& graph, program::Sequence& prog,
                               const std::vector<unsigned>& tiles, SyncType syncType,
                               const DebugContext& debugContext = {});
inline std::vector<Tensor> cycleStamp(Graph& graph, program::Sequence& prog,
                                      const std::vector<unsigned>& tiles,
                                      const DebugContext& debugContext = {}) {
  return cycleStamp(graph, prog, tiles, SyncType::INTERNAL, debugContext);
}

}  // namespace poplar
