#pragma once
#include <memory>
#include <string>
#include <tuple>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "popsparse/FullyConnectedParams.hpp"
#include "popsparse/PlanningCache.hpp"
#include "popsparse/SparseTensor.hpp"

// Options: metaInfoBucketOversizeProportion (0.3) is the room for additional blocks in the weights,
// as a share of the expected number; partialsType must be float. availableMemoryProportion,
// doGradAPass, doGradWPass, sharedBuckets and the partitioner's options are accepted without
// effect; others throw invalid_option. Layers with more than one group throw poplibs_error.

namespace popsparse {
namespace dynamic {

/// Weights [outputChannels, inputChannels]; write a Partitioner's encoding to its tensors.
SparseTensor createFullyConnectedWeights(poplar::Graph& graph, const poplar::Type& inputType,
                                         const FullyConnectedParams& params,
                                         const poplar::DebugContext& debugContext = {},
                                         const poplar::OptionFlags& options = {},
                                         PlanningCache* cache = nullptr);
/// Activations [batchSize, inputChannels].
poplar::Tensor createFullyConnectedInput(poplar::Graph& graph, const poplar::Type& inputType,
                                         const FullyConnectedParams& params,
                                         const poplar::DebugContext& debugContext = {},
                                         const poplar::OptionFlags& options = {},
                                         PlanningCache* cache = nullptr);

/// activations [batchSize, inputChannels] x weights transposed: [batchSize, outputChannels].
poplar::Tensor fullyConnectedFwd(poplar::Graph& graph, const SparseTensor& weights,
                                 const poplar::Tensor& activations,
                                 const FullyConnectedParams& fcParams,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext = {},
                                 const poplar::OptionFlags& options = {},
                                 PlanningCache* cache = nullptr);

/// gradients [batchSize, outputChannels] x weights: [batchSize, inputChannels].
poplar::Tensor fullyConnectedGradA(poplar::Graph& graph, const SparseTensor& weights,
                                   const poplar::Tensor& gradients,
                                   const FullyConnectedParams& fcParams,
                                   poplar::program::Sequence& prog,
                                   const poplar::DebugContext& debugContext = {},
                                   const poplar::OptionFlags& options = {},
                                   PlanningCache* cache = nullptr);

/// The gradient of the weights' values, with the shape of their nzValues: gradA [batchSize,
/// outputChannels] transposed x activations [batchSize, inputChannels], at the positions of the
/// blocks. It is 0 for unused blocks.
poplar::Tensor fullyConnectedSparseGradW(
    poplar::Graph& graph, poplar::Tensor sparsityMetaInfo, const poplar::Tensor& gradA,
    const poplar::Tensor& activations, const FullyConnectedParams& fcParams,
    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {},
    const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

/// Serial splits {numGroups, inputSize, outputSize} of a dense gradient: one of each.
std::tuple<unsigned, unsigned, unsigned> fullyConnectedDenseGradWSerialSplits(
    const poplar::Graph& graph, const poplar::Type& inputType, const FullyConnectedParams& fcParams,
    const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

}  // namespace dynamic
}  // namespace popsparse
