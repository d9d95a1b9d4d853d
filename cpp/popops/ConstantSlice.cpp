// Slices at offsets that are known when the graph is made.
#include <vector>

#include "popops/DynamicSlice.hpp"

namespace popops {
namespace {

/// [n, 1] on tile 0, as the functions of run-time offsets take them.
poplar::Tensor constantOffsets(poplar::Graph& graph, poplar::ArrayRef<unsigned> offsets,
                               const poplar::DebugContext& debugContext) {
  const auto rows = graph.addConstant(poplar::UNSIGNED_INT, {offsets.size(), 1}, offsets.data(),
                                      {debugContext, "offsets"});
  graph.setTileMapping(rows, 0);
  return rows;
}

}  // namespace

poplar::Tensor multiSlice(poplar::Graph& graph, const poplar::Tensor& t,
                          poplar::ArrayRef<unsigned> offsets, std::size_t dim,
                          poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                          const poplar::OptionFlags& optionFlags) {
  return multiSlice(graph, t, constantOffsets(graph, offsets, debugContext), {dim}, {1}, prog,
                    SlicePlan(), optionFlags, debugContext);
}

void multiUpdateAdd(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s,
                    poplar::ArrayRef<unsigned> offsets, const poplar::Tensor& scale,
                    std::size_t dim, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext,
                    const poplar::OptionFlags& optionFlags) {
  multiUpdateAdd(graph, t, s, constantOffsets(graph, offsets, debugContext), scale, {dim}, {1},
                 prog, SlicePlan(), optionFlags, debugContext);
}

}  // namespace popops
