#include "poplar/CycleCount.hpp"

#include <cmath>
#include <cstdint>
#include <optional>

#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"

namespace poplar {
namespace {

namespace engine = ipujax::engine;
using program::Sequence;

/// Cycles to read the counter and store it; an assumption.
constexpr double kStampCycles = 30;

/// Counts the cycles so far, or those since an earlier stamp.
Tensor stamp(Graph& graph, Sequence& prog, unsigned tile, const std::optional<Tensor>& since,
             const DebugContext& debug) {
  const Tensor count = graph.addVariable(UNSIGNED_INT, {2}, debug);
  graph.setTileMapping(count, tile);
  engine::StepSpec spec;
  spec.kernel = "engine.cycle_stamp";
  if (since) spec.operands.push_back({*since, engine::Access::kRead, true});
  spec.operands.push_back({count, engine::Access::kWrite, true});
  const engine::GraphScope scope = graph;
  engine::addComputeSet(spec.cost, scope.system, kStampCycles, 1);
  if (since) spec.attributes.set("own", std::int64_t{std::llround(spec.cost.cycles())});
  engine::emit(scope, prog, std::move(spec), debug);
  return count;
}

}  // namespace

Tensor cycleCount(Graph& graph, Sequence& prog, unsigned tile, SyncType syncType,
                  const DebugContext& debugContext) {
  Sequence timed(debugContext);
  const Tensor begin = cycleStamp(graph, timed, tile, syncType, debugContext);
  timed.add(prog);
  const Tensor count = stamp(graph, timed, tile, begin, debugContext);
  prog = timed;
  return count;
}

Tensor cycleStamp(Graph& graph, Sequence& prog, unsigned tile, SyncType /*syncType*/,
                  const DebugContext& debugContext) {
  return stamp(graph, prog, tile, std::nullopt, debugContext);
}

std::vector<Tensor> cycleStamp(Graph& graph, Sequence& prog, const std::vector<unsigned>& tiles,
                               SyncType syncType, const DebugContext& debugContext) {
  std::vector<Tensor> stamps;
  for (const unsigned tile : tiles)
    stamps.push_back(cycleStamp(graph, prog, tile, syncType, debugContext));
  return stamps;
}

}  // namespace poplar
