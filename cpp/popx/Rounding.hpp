#pragma once
#include <cstdint>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

/// The source of random bits for stochastic rounding. A key is UNSIGNED_INT [2]. In the model the
/// bits of an element depend only on a key, a stream (popx::expr::Rounded) and the element's index,
/// so recomputed work can round as it did before. On hardware each tile has a generator, which the
/// seed of a run starts, so recomputed work rounds differently.
namespace popx {

/// One key for each element of `replicas`, derived from the seed that the host gives a run.
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

/// A counter, UNSIGNED_INT [1], which the first `count` sets to 0.
poplar::Tensor startCount(poplar::Graph& graph, poplar::program::Sequence& prog,
                          const poplar::DebugContext& debugContext = {});
/// Adds 1.
void count(poplar::Graph& graph, const poplar::Tensor& number, poplar::program::Sequence& prog,
           const poplar::DebugContext& debugContext = {});

/// Sets the key of all steps that are added from now on, and the stream of the first one outside
/// popx::expr::Rounded; later ones take the following streams.
void setRoundingKey(poplar::Graph& graph, const poplar::Tensor& key, std::int64_t stream);

}  // namespace popx
