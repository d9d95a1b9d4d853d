// Slices at offsets that are known when the graph is made.
#include <vector>

#include "popops/DynamicSlice.hpp"
#include "popops/Zero.hpp"
#include "popops/internal/SliceOptions.hpp"

namespace popops {
namespace {

/// The offsets as [n, 1] on tile 0, the form that functions with run-time offsets take.
poplar::Tensor constantOffsets(poplar::Graph& graph, const std::vector<unsigned>& offsets,
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
  // Nothing is checked at run time: out-of-range offsets become 0 here, or their slices zeros.
  const auto options = internal::sliceOptions(optionFlags);
  std::vector<unsigned> inside = offsets.cloneAsVector();
  std::vector<std::size_t> zeros;
  for (std::size_t i = 0; dim < t.rank() && i < inside.size(); ++i) {
    const std::size_t size = t.dim(static_cast<unsigned>(dim));
    if (inside[i] < size) continue;
    const bool is_padding = options.has_padding_index && inside[i] == size;
    if (!options.remaps_to_zero || is_padding) zeros.push_back(i);
    inside[i] = 0;
  }
  const auto made = multiSlice(graph, t, constantOffsets(graph, inside, debugContext), {dim}, {1},
                               prog, SlicePlan(), {}, debugContext);
  for (const auto i : zeros) zero(graph, made[i], prog, {debugContext, "padding"});
  return made;
}

void multiUpdateAdd(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s,
                    poplar::ArrayRef<unsigned> offsets, const poplar::Tensor& scale,
                    std::size_t dim, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext,
                    const poplar::OptionFlags& optionFlags) {
  multiUpdateAdd(graph, t, s, constantOffsets(graph, offsets.cloneAsVector(), debugContext), scale,
                 {dim}, {1}, prog, SlicePlan(), optionFlags, debugContext);
}

}  // namespace popops
