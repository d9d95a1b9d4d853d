#pragma once
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

/// The parts of normalisation layers, over activations [N][C][field...] FLOAT or HALF: statistics
/// of each of the C channels over N and the field, and their uses. Composed of popops::reduce and
/// popops::map. Options have no effect.
namespace poplin {

/// gamma (beta): a vector [C], mapped near the activations; not initialised.
poplar::Tensor createNormGamma(poplar::Graph& graph, const poplar::Tensor& acts,
                               const poplar::Type& type,
                               const poplar::DebugContext& debugContext = {});
poplar::Tensor createNormGamma(poplar::Graph& graph, const poplar::Tensor& acts,
                               const poplar::DebugContext& debugContext = {});
poplar::Tensor createNormBeta(poplar::Graph& graph, const poplar::Tensor& acts,
                              const poplar::Type& type,
                              const poplar::DebugContext& debugContext = {});
poplar::Tensor createNormBeta(poplar::Graph& graph, const poplar::Tensor& acts,
                              const poplar::DebugContext& debugContext = {});
std::pair<poplar::Tensor, poplar::Tensor> createNormParams(
    poplar::Graph& graph, const poplar::Tensor& acts,
    const poplar::DebugContext& debugContext = {});

/// The mean and 1 / sqrt(variance + eps) of each channel, [C] of the activations' type. The
/// variance is mean(x^2) - mean(x)^2 or, if the algorithm is `stable`, mean((x - mean(x))^2);
/// for an unbiased estimate of n elements, variance + eps is scaled by n / (n - 1), as PopLibs
/// does. Mean and variance are 0 if there are no elements. Means of squares are kept in
/// partialsType, or in the activations' type if that is wider.
std::pair<poplar::Tensor, poplar::Tensor> normStatistics(
    poplar::Graph& graph, const poplar::Tensor& actsUngrouped, float eps,
    poplar::program::Sequence& prog, bool unbiasedVarEstimate, bool stableAlgo = false,
    const poplar::Type& partialsType = poplar::FLOAT, const poplar::DebugContext& debugContext = {},
    const poplar::OptionFlags& options = {});

/// Adds each tensor over groups of `groupSize` adjacent replicas; returns the sums in order.
using DistributedNormReduceCallback = std::function<std::vector<poplar::Tensor>(
    poplar::Graph& replicatedGraph, const std::vector<poplar::Tensor>& inputsToReduce,
    poplar::program::Sequence& prog, unsigned groupSize, const poplar::DebugContext& debugContext,
    const poplar::OptionFlags& options)>;

/// The same over the batches of several replicas, `normSize` batch elements in total, a multiple of
/// N. The callback is called once, or twice if the algorithm is stable.
std::pair<poplar::Tensor, poplar::Tensor> distributedNormStatistics(
    poplar::Graph& replicatedGraph, const poplar::Tensor& actsUngrouped, float eps,
    poplar::program::Sequence& prog, bool unbiasedVarEstimate,
    DistributedNormReduceCallback allReduceCallback, unsigned normSize, bool stableAlgo = false,
    const poplar::Type& partialsType = poplar::FLOAT, const poplar::DebugContext& debugContext = {},
    const poplar::OptionFlags& options = {});

/// (acts - mean) * iStdDev.
poplar::Tensor normWhiten(poplar::Graph& graph, const poplar::Tensor& acts,
                          const poplar::Tensor& mean, const poplar::Tensor& iStdDev,
                          poplar::program::Sequence& prog,
                          const poplar::DebugContext& debugContext = {},
                          const poplar::OptionFlags& options = {});

/// actsWhitened * gamma + beta.
poplar::Tensor normalise(poplar::Graph& graph, const poplar::Tensor& actsWhitened,
                         const poplar::Tensor& gamma, const poplar::Tensor& beta,
                         poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext = {},
                         const poplar::OptionFlags& options = {});

/// The gradients of gamma and beta: sums of gradsIn * actsWhitened and of gradsIn, [C].
std::pair<poplar::Tensor, poplar::Tensor> normParamGradients(
    poplar::Graph& graph, const poplar::Tensor& actsWhitened, const poplar::Tensor& gradsIn,
    poplar::program::Sequence& prog, const poplar::Type& partialsType = poplar::FLOAT,
    const poplar::DebugContext& debugContext = {}, const poplar::OptionFlags& options = {});

/// The gradient through `normalise`: gradsIn * gamma.
poplar::Tensor normGradients(poplar::Graph& graph, const poplar::Tensor& gradsIn,
                             const poplar::Tensor& gamma, poplar::program::Sequence& prog,
                             const poplar::DebugContext& debugContext = {},
                             const poplar::OptionFlags& options = {});

/// The gradient through the statistics and whitening:
/// invStdDev * (gradsIn - mean(gradsIn) - actsWhitened * mean(gradsIn * actsWhitened)).
poplar::Tensor normStatisticsGradients(poplar::Graph& graph, const poplar::Tensor& actsWhitened,
                                       const poplar::Tensor& gradsIn,
                                       const poplar::Tensor& invStdDev,
                                       poplar::program::Sequence& prog,
                                       const poplar::Type& partialsType = poplar::FLOAT,
                                       const poplar::DebugContext& debugContext = {},
                                       const poplar::OptionFlags& options = {});
/// The same with means over several replicas, as in distributedNormStatistics.
poplar::Tensor distributedNormStatisticsGradients(
    poplar::Graph& replicatedGraph, const poplar::Tensor& actsWhitened,
    const poplar::Tensor& gradsIn, const poplar::Tensor& invStdDev, poplar::program::Sequence& prog,
    DistributedNormReduceCallback reduceCallback, unsigned normSize,
    const poplar::Type& partialsType = poplar::FLOAT, const poplar::DebugContext& debugContext = {},
    const poplar::OptionFlags& options = {});

}  // namespace poplin
