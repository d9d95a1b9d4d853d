#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Interval.hpp"
#include "popsparse/FullyConnected.hpp"
#include "popsparse/FullyConnectedParams.hpp"
#include "popsparse/SparseTensor.hpp"

namespace popsparse {
namespace dynamic {

/// Indices of rows of the weights: UNSIGNED_INT [numIndices].
poplar::Tensor createIndicesTensor(poplar::Graph& graph, const FullyConnectedParams& params,
                                   std::size_t numIndices, const poplar::OptionFlags& options = {},
                                   const poplar::DebugContext& debugContext = {});
/// Rows of the weights: [numIndices, inputChannels].
poplar::Tensor createSliceTensor(poplar::Graph& graph, const poplar::Type& dataType,
                                 const FullyConnectedParams& params, std::size_t numIndices,
                                 const poplar::DebugContext& debugContext = {},
                                 const poplar::OptionFlags& options = {},
                                 PlanningCache* cache = nullptr);

/// Rows of the sparse weights as a dense tensor: [indices, inputChannels].
poplar::Tensor embeddingSlice(poplar::Graph& graph, const SparseTensor& t,
                              const poplar::Tensor& indices, poplar::program::Sequence& prog,
                              const FullyConnectedParams& params,
                              const poplar::DebugContext& debugContext = {},
                              const poplar::OptionFlags& options = {},
                              PlanningCache* cache = nullptr);

/// Adds scale * slices [indices, inputChannels] to the values in these rows of the weights.
void embeddingUpdateAdd(poplar::Graph& graph, const SparseTensor& t, const poplar::Tensor& slices,
                        const poplar::Tensor& indices, const poplar::Tensor& scale,
                        poplar::program::Sequence& prog, const FullyConnectedParams& params,
                        const poplar::DebugContext& debugContext = {},
                        const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

}  // namespace dynamic
}  // namespace popsparse
