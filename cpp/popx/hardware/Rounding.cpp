#include "popx/Rounding.hpp"

#include "poprand/RandomGen.hpp"

namespace popx {

std::vector<poplar::Tensor> runKeys(poplar::Graph& graph,
                                    const std::vector<std::vector<unsigned>>& replicas,
                                    poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext) {
  if (replicas.empty()) return {};
  const auto key = makeKey(graph, debugContext);
  const auto stream = graph.addHostToDeviceFIFO("seed", poplar::UNSIGNED_INT, 2);
  prog.add(poplar::program::Copy(stream, key, false, debugContext));
  poprand::setSeed(graph, key, 0, prog, debugContext);
  return std::vector<poplar::Tensor>(replicas.size(), key);
}

poplar::Tensor makeKey(poplar::Graph& graph, const poplar::DebugContext& debugContext) {
  const auto key = graph.addVariable(poplar::UNSIGNED_INT, {2}, {debugContext, "key"});
  graph.setTileMapping(key, 0);
  return key;
}

void foldKey(poplar::Graph& /*graph*/, const poplar::Tensor& /*key*/,
             const poplar::Tensor& /*number*/, std::int32_t /*offset*/, std::int32_t /*factor*/,
             const poplar::Tensor& /*folded*/, poplar::program::Sequence& /*prog*/,
             const poplar::DebugContext& /*debugContext*/) {}

poplar::Tensor startCount(poplar::Graph& graph, poplar::program::Sequence& /*prog*/,
                          const poplar::DebugContext& debugContext) {
  const auto number = graph.addConstant<unsigned>(poplar::UNSIGNED_INT, {1}, 0u, debugContext);
  graph.setTileMapping(number, 0);
  return number;
}

void count(poplar::Graph& /*graph*/, const poplar::Tensor& /*number*/,
           poplar::program::Sequence& /*prog*/, const poplar::DebugContext& /*debugContext*/) {}

void setRoundingKey(poplar::Graph& /*graph*/, const poplar::Tensor& /*key*/,
                    std::int64_t /*stream*/) {}

}  // namespace popx
