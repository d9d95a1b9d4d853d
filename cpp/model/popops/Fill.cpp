#include "popops/Fill.hpp"

#include "engine/graph/ProgramNode.hpp"
#include "popops/Zero.hpp"
#include "popops/internal/Map.hpp"
#include "popops/internal/QuarterCast.hpp"

namespace popops {

void fillWith(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
              const expr::Const& value, const poplar::DebugContext& debugContext) {
  if (!t.hasMetadata())
    return internal::mapWithOutputs(graph, {value}, {}, {t}, prog, debugContext);
  if (t.numElements() == 0) return;
  const poplar::Tensor one = graph.addVariable(poplar::FLOAT, {1}, {debugContext, "value"});
  graph.setTileMapping(one, 0);
  internal::mapWithOutputs(graph, {value}, {}, {one}, prog, debugContext);
  const poplar::Tensor all =
      one.broadcast(static_cast<unsigned>(t.numElements()), 0).reshape(t.shape());
  internal::castQuarters(graph, all, t, prog, debugContext);
}

void fillWith(poplar::Graph& graph, const poplar::Tensor& t, const poplar::ComputeSet& fillCS,
              const expr::Const& value) {
  poplar::program::Sequence steps;
  fillWith(graph, t, steps, value, {});
  fillCS.steps()->children.push_back(steps.node());
}

void zero(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
          const poplar::DebugContext& debugContext) {
  fill(graph, t, prog, 0, debugContext);
}

void zero(poplar::Graph& graph, const std::vector<poplar::Tensor>& ts,
          poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  for (const auto& t : ts) zero(graph, t, prog, debugContext);
}

void zero(poplar::Graph& graph, const poplar::Tensor& t, unsigned, poplar::ComputeSet zeroCS) {
  fillWith(graph, t, zeroCS, fillValueOf(t, 0));
}

void zero(poplar::Graph& graph, poplar::Tensor t, const std::vector<poplar::Interval>& tileRegions,
          unsigned tile, poplar::ComputeSet zeroCS) {
  if (!tileRegions.empty())
    zero(graph, poplar::concat(t.flatten().slices(tileRegions)), tile, std::move(zeroCS));
}

void zero(poplar::Graph& graph, const poplar::Tensor& t,
          const std::vector<std::vector<poplar::Interval>>& mapping, poplar::ComputeSet zeroCS) {
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    zero(graph, t, mapping[tile], tile, zeroCS);
}

}  // namespace popops
