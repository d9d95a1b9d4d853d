#pragma once
#include <vector>

#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/SyncType.hpp"

namespace poplar {

/// Source: Poplar API reference, CycleCount.hpp. Tiles have a counter of 64 bits; the model counts
/// the cycles that it accounts for. Results are UNSIGNED_INT [2], the lower word first. On several
/// IPUs it counts their steps one after another, also those that different IPUs run at one time: a
/// profile says how long these take together.

/// Replaces `prog` by a program that also counts the cycles it takes; returns the count. What is
/// added to `prog` later is not counted.
Tensor cycleCount(Graph& graph, program::Sequence& prog, unsigned tile, SyncType syncType,
                  const DebugContext& debugContext = {});
inline Tensor cycleCount(Graph& graph, program::Sequence& prog, unsigned tile,
                         const DebugContext& debugContext = {}) {
  return cycleCount(graph, prog, tile, SyncType::INTERNAL, debugContext);
}

/// The cycles from the beginning of the run to where this is added to `prog`.
Tensor cycleStamp(Graph& graph, program::Sequence& prog, unsigned tile, SyncType syncType,
                  const DebugContext& debugContext = {});
inline Tensor cycleStamp(Graph& graph, program::Sequence& prog, unsigned tile,
                         const DebugContext& debugContext = {}) {
  return cycleStamp(graph, prog, tile, SyncType::INTERNAL, debugContext);
}

/// The same for each of some tiles, in their order.
std::vector<Tensor> cycleStamp(Graph& graph, program::Sequence& prog,
                               const std::vector<unsigned>& tiles, SyncType syncType,
                               const DebugContext& debugContext = {});
inline std::vector<Tensor> cycleStamp(Graph& graph, program::Sequence& prog,
                                      const std::vector<unsigned>& tiles,
                                      const DebugContext& debugContext = {}) {
  return cycleStamp(graph, prog, tiles, SyncType::INTERNAL, debugContext);
}

}  // namespace poplar
