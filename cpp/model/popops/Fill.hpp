#pragma once
#include <type_traits>
#include <vector>

#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popops/Expr.hpp"

namespace popops {

/// Writes one value to every element, of any type; quarters round it according to their metadata.
/// For the library.
void fillWith(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
              const expr::Const& value, const poplar::DebugContext& debugContext);
/// The same in a compute set.
void fillWith(poplar::Graph& graph, const poplar::Tensor& t, const poplar::ComputeSet& fillCS,
              const expr::Const& value);

/// The value in the element type of `t`, or FLOAT for quarters, which are cast from it.
template <typename FillValueType>
expr::Const fillValueOf(const poplar::Tensor& t, FillValueType fillValue) {
  return {t.elementType().requiresMetadata() ? poplar::FLOAT : t.elementType(), fillValue};
}

template <typename FillValueType, class = std::enable_if_t<std::is_arithmetic_v<FillValueType>>>
void fill(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
          FillValueType fillValue, const poplar::DebugContext& debugContext = {}) {
  fillWith(graph, t, prog, fillValueOf(t, fillValue), debugContext);
}

template <typename FillValueType>
void fill(poplar::Graph& graph, const std::vector<poplar::Tensor>& ts,
          poplar::program::Sequence& prog, FillValueType fillValue,
          const poplar::DebugContext& debugContext = {}) {
  for (const auto& t : ts) fill(graph, t, prog, fillValue, debugContext);
}

/// Fills all of `t`, or the regions of flattened `t` in `tileRegions` or `mapping` (by tile), when
/// `fillCS` runs. On hardware the vertices run on `tile`.
template <typename FillValueType>
void fill(poplar::Graph& graph, const poplar::Tensor& t, unsigned /*tile*/,
          poplar::ComputeSet fillCS, FillValueType fillValue) {
  fillWith(graph, t, fillCS, fillValueOf(t, fillValue));
}
template <typename FillValueType>
void fill(poplar::Graph& graph, poplar::Tensor t, const std::vector<poplar::Interval>& tileRegions,
          unsigned tile, poplar::ComputeSet fillCS, FillValueType fillValue) {
  if (!tileRegions.empty())
    fill(graph, poplar::concat(t.flatten().slices(tileRegions)), tile, fillCS, fillValue);
}
template <typename FillValueType>
void fill(poplar::Graph& graph, const poplar::Tensor& t,
          const std::vector<std::vector<poplar::Interval>>& mapping, poplar::ComputeSet fillCS,
          FillValueType fillValue) {
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    fill(graph, t, mapping[tile], tile, fillCS, fillValue);
}

}  // namespace popops
