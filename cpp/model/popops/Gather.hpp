#pragma once
#include <cstddef>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"

namespace popops {

struct GatherParams {
  /// How many entries of the axis createGatherInput tries to put on one tile at most.
  std::size_t maxElementsPerTile = 65535;

  GatherParams() = default;
  GatherParams(std::size_t maxElementsPerTile)  // NOLINT: implicit as in the SDK
      : maxElementsPerTile(maxElementsPerTile) {}
};

/// A tensor to gather from along `axis`, mapped as a sliceable tensor. Throws poplibs_error for an
/// axis that the shape does not have.
poplar::Tensor createGatherInput(poplar::Graph& graph, const poplar::Type& type,
                                 const std::vector<std::size_t>& operandShape, unsigned axis,
                                 GatherParams params = {},
                                 const poplar::DebugContext& debugContext = {});

/// Slices of depth 1 of `input` along `axis`: shape indices.shape() with input's other dimensions
/// around it (numpy's take). Indices are clamped. A tile has the same elements of every slice.
poplar::Tensor gather(poplar::Graph& graph, const poplar::Tensor& input,
                      const poplar::Tensor& indices, unsigned axis, poplar::program::Sequence& prog,
                      GatherParams params, const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& optionFlags = {});

/// A tensor to gather slices of sliceSizes from, mapped as one that is sliceable in the dimensions
/// of startIndexMap.
poplar::Tensor createGatherInput(poplar::Graph& graph, const poplar::Type& type,
                                 const std::vector<std::size_t>& inputShape,
                                 const std::vector<std::size_t>& sliceSizes,
                                 std::vector<unsigned> startIndexMap,
                                 const poplar::DebugContext& debugContext = {});

/// XLA's gather without batching dimensions; see popx::gather. A start index whose window
/// does not lie inside the input is replaced by 0.
poplar::Tensor gather(poplar::Graph& graph, const poplar::Tensor& input,
                      const poplar::Tensor& indices, std::size_t indexVectorDim,
                      const std::vector<std::size_t>& offsetDims,
                      const std::vector<std::size_t>& sliceSizes,
                      const std::vector<std::size_t>& collapsedSliceDims,
                      const std::vector<unsigned>& startIndexMap, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& optionFlags = {});

}  // namespace popops
