#pragma once
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Tensor.hpp"

namespace poputil {

/// The size of groups of the last dimension: what divides both the first run of memory and the
/// longest interval of a tile in the first row; at least 1. Throws poplibs_error for rank 0.
unsigned detectInnermostGrouping(const poplar::Graph& graph, const poplar::Tensor& t);

/// A dimension and the size of its groups.
using GroupingInfo = std::pair<unsigned, unsigned>;

/// The grouped dimensions from the innermost out, each with the group's size; a dimension may come
/// again.
std::vector<GroupingInfo> detectDimGroupings(const poplar::Graph& graph, const poplar::Tensor& t);

/// A tensor, not mapped, whose slices by nPartitions in each dimension are one piece of memory
/// each. Slices of a dimension are equal but for the last ones, which may be empty. Throws
/// poplibs_error unless both are of one length.
poplar::Tensor createPartitionableTensor(poplar::Graph& graph, const poplar::Type& type,
                                         const std::vector<std::size_t>& shape,
                                         const std::vector<std::size_t>& nPartitions,
                                         const poplar::DebugContext& debugContext = {});

/// Calls f with the indices and the slice of each of these partitions, row-major.
void iterateTensorPartitions(
    const poplar::Tensor& t, const std::vector<std::size_t>& nPartitions,
    const std::function<void(const std::vector<std::size_t>& i, const poplar::Tensor& s)>& f);

}  // namespace poputil
