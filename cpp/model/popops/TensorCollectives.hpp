#pragma once
#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "popops/CollectiveTypes.hpp"

/// Collectives between the IPUs of one graph: row i of a tensor lies on IPU i. Options, which
/// choose directions around the ring, have no effect: copies plan the exchange between IPUs.
namespace popops {

/// The reduction over dimension 0 of a tensor of rank 2, in one part for each IPU.
Chunks reduceScatter(poplar::Graph& graph, const poplar::Tensor& toReduce, CollectiveOperator op,
                     poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {},
                     const poplar::OptionFlags& options = {});
/// All parts on each IPU: [IPUs, elements].
poplar::Tensor allGather(poplar::Graph& graph, const Chunks& toGather,
                         poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext = {},
                         const poplar::OptionFlags& options = {});
/// Each row becomes the reduction over dimension 0.
poplar::Tensor allReduce(poplar::Graph& graph, const poplar::Tensor& toReduce,
                         CollectiveOperator op, poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext = {},
                         const poplar::OptionFlags& options = {});

}  // namespace popops
