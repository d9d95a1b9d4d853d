#pragma once
#include <ostream>
#include <utility>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "popops/SortOrder.hpp"

namespace popops {

/// What topK selects: the k largest or smallest of the last dimension, and their order.
struct TopKParams {
  TopKParams(unsigned k, bool largest, SortOrder sortOrder, bool stableSort = false) noexcept
      : k(k), largest(largest), sortOrder(sortOrder), stableSort(stableSort) {}
  unsigned k;
  bool largest;
  SortOrder sortOrder;
  bool stableSort;
};
std::ostream& operator<<(std::ostream& os, const TopKParams& params);

/// A tensor mapped so that topK moves little data.
poplar::Tensor createTopKInput(poplar::Graph& graph, const poplar::Type& type,
                               const std::vector<std::size_t>& shape, const TopKParams& params,
                               const poplar::DebugContext& debugContext = {});

/// The k largest (or smallest) elements of each row of the last dimension. Floats compare in total
/// order: NaN is the largest, -0 is below +0. Of equal elements the one with the lower index is
/// selected. The best come first, unless the sort order reverses the result. Cost: a bitonic top-k,
/// poplibs popops bitonic.
poplar::Tensor topK(poplar::Graph& graph, poplar::program::Sequence& prog, const poplar::Tensor& t,
                    const TopKParams& params, const poplar::DebugContext& debugContext = {});
/// (keys, values): the selected keys, and the values at their positions.
std::pair<poplar::Tensor, poplar::Tensor> topKKeyValue(
    poplar::Graph& graph, poplar::program::Sequence& prog, const poplar::Tensor& keys,
    const poplar::Tensor& values, const TopKParams& params,
    const poplar::DebugContext& debugContext = {});
/// (elements, their UNSIGNED_INT indices in the last dimension).
std::pair<poplar::Tensor, poplar::Tensor> topKWithPermutation(
    poplar::Graph& graph, poplar::program::Sequence& prog, const poplar::Tensor& t,
    const TopKParams& params, const poplar::DebugContext& debugContext = {});

}  // namespace popops
