#pragma once
#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/SyncType.hpp"

namespace poplar {

/// Counts the cycles that `prog` takes: two UNSIGNED_INT on `tile`, the low word first, that `prog`
/// writes when it ends. What is added to `prog` later is not counted. On the model they are those
/// of the account, equal on all tiles; loops count the iterations that the run makes.
Tensor cycleCount(Graph& graph, program::Sequence& prog, unsigned tile, SyncType syncType,
                  const DebugContext& debugContext = {});
inline Tensor cycleCount(Graph& graph, program::Sequence& prog, unsigned tile,
                         const DebugContext& debugContext = {}) {
  return cycleCount(graph, prog, tile, SyncType::INTERNAL, debugContext);
}

}  // namespace poplar
