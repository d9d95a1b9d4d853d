#pragma once
#include <cstddef>
#include <vector>

#include "poplar/Graph.hpp"

namespace popops {

struct IndicesAndTensor {
  poplar::Tensor indices;  ///< UNSIGNED_INT, one for each row
  poplar::Tensor tensor;
};

/// Tiles get packets of 1,024 bytes, in order, and each index lies where its row begins. `isRead`
/// has no effect. `offset`: the bytes of the tensors made before, whose tiles come first.

/// Rows [indices, length] for copies with a data stream or a remote buffer, and their indices.
/// Throws poplibs_error unless the shape has two dimensions.
IndicesAndTensor createHostSliceableTensor(poplar::Graph& graph, const poplar::Type& type,
                                           const std::vector<std::size_t>& shape, bool isRead,
                                           const poplar::DebugContext& debugContext = {});
IndicesAndTensor createHostSliceableTensor(poplar::Graph& graph, const poplar::Type& type,
                                           const std::vector<std::size_t>& shape, bool isRead,
                                           std::size_t offset,
                                           const poplar::DebugContext& debugContext = {});

/// A tensor for copies with the host, spread over all tiles.
poplar::Tensor createHostTransferableTensor(poplar::Graph& graph, const poplar::Type& type,
                                            const std::vector<std::size_t>& shape, bool isRead,
                                            const poplar::DebugContext& debugContext = {});
poplar::Tensor createHostTransferableTensor(poplar::Graph& graph, const poplar::Type& type,
                                            const std::vector<std::size_t>& shape, bool isRead,
                                            std::size_t offset,
                                            const poplar::DebugContext& debugContext = {});

}  // namespace popops
