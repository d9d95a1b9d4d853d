#pragma once
#include <cstdint>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

/// Where the random bits of stochastic rounding come from. A key is UNSIGNED_INT [2]. In the model
/// the bits of an element follow from a key, from a stream (popx::expr::Rounded) and from the
/// number of the element alone, so work that is done again can round as it did. On hardware each
/// tile has a generator, which the seed of a run starts: what is done again rounds in another way.
namespace popx {

/// One key for each element of `replicas`, which follow from the seed that the host gives a run.
/// Replica r takes the key of replica `replicas[i][r]`: replicas with equal values round alike. On
/// hardware the seed is the stream "seed", and each replica takes its own.
std::vector<poplar::Tensor> runKeys(poplar::Graph& graph,
                                    const std::vector<std::vector<unsigned>>& replicas,
                                    poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext = {});

/// A variable for a key.
poplar::Tensor makeKey(poplar::Graph& graph, const poplar::DebugContext& debugContext = {});

/// Sets `folded` to the key that belongs to offset + factor * number; `number`: UNSIGNED_INT [1].
void foldKey(poplar::Graph& graph, const poplar::Tensor& key, const poplar::Tensor& number,
             std::int32_t offset, std::int32_t factor, const poplar::Tensor& folded,
             poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

/// UNSIGNED_INT [1], of which the first `count` makes 0.
poplar::Tensor startCount(poplar::Graph& graph, poplar::program::Sequence& prog,
                          const poplar::DebugContext& debugContext = {});
/// Adds 1.
void count(poplar::Graph& graph, const poplar::Tensor& number, poplar::program::Sequence& prog,
           const poplar::DebugContext& debugContext = {});

/// Sets the key of all steps that are added from now on, and the stream of the first that is in
/// no popx::expr::Rounded; later ones take the streams after it.
void setRoundingKey(poplar::Graph& graph, const poplar::Tensor& key, std::int64_t stream);

}  // namespace popx
