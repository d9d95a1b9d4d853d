#include "poputil/internal/Aliases.hpp"

namespace poputil::internal {

std::pair<poplar::Tensor, poplar::Tensor> withoutAliases(const poplar::Graph& graph,
                                                         const poplar::Tensor& from,
                                                         const poplar::Tensor& to) {
  if (!to.containsAliases()) return {from, to};
  const poplar::Tensor flat = to.flatten();
  const auto once = graph.getSortedContiguousRegions(
      flat, poplar::ArrayRef<poplar::Interval>({{0, flat.numElements()}}), true);
  return {poplar::concat(from.flatten().slices(once)), poplar::concat(flat.slices(once))};
}

}  // namespace poputil::internal
