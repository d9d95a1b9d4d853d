#pragma once
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Tensor.hpp"

namespace poputil {

/// Group size of the last dimension: gcd of the first memory run and the longest interval of a tile
/// in the first row; 1 if it does not divide the row. Throws poplibs_error for rank 0.
unsigned detectInnermostGrouping(const poplar::Graph& graph, const poplar::Tensor& t);

/// A dimension and the size of its groups.
using GroupingInfo = std::pair<unsigned, unsigned>;

/// The grouped dimensions from the innermost out, each with the group's size; a dimension may occur
/// more than once.
std::vector<GroupingInfo> detectDimGroupings(const poplar::Graph& graph, const poplar::Tensor& t);

/// An unmapped tensor whose partitions, nPartitions[d] in dimension d, are contiguous in memory.
/// Partitions of a dimension are equal except the last ones, which may be empty. Throws
/// poplibs_error unless `shape` and `nPartitions` have the same length.
poplar::Tensor createPartitionableTensor(poplar::Graph& graph, const poplar::Type& type,
                                         const std::vector<std::size_t>& shape,
                                         const std::vector<std::size_t>& nPartitions,
                                         const poplar::DebugContext& debugContext = {});

/// Calls f with the indices and the slice of each of these partitions, in row-major order.
void iterateTensorPartitions(
    const poplar::Tensor& t, const std::vector<std::size_t>& nPartitions,
    const std::function<void(const std::vector<std::size_t>& i, const poplar::Tensor& s)>& f);

}  // namespace poputil
