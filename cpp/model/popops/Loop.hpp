#pragma once
#include <cstddef>
#include <functional>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popops/ElementWise.hpp"
#include "poputil/DebugInfo.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/VertexTemplates.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

/// Makes a loop's body, given the tensor that holds the counter: UNSIGNED_INT, one element.
using CountedLoopBodyType = std::function<poplar::program::Program(const poplar::Tensor&)>;

/// for (i = begin; i < end; i += step) body(i). Throws poplibs_error unless begin < end and
/// step > 0.
poplar::program::Sequence countedLoop(poplar::Graph& graph, std::size_t begin, std::size_t end,
                                      std::size_t step, const CountedLoopBodyType& body,
                                      const poplar::DebugContext& debugContext = {});
/// Runs the body `count` times, counting from 0.
poplar::program::Sequence countedLoop(poplar::Graph& graph, std::size_t count,
                                      const CountedLoopBodyType& body,
                                      const poplar::DebugContext& debugContext = {});

/// for (count = initialCount; count != countLimit; count += countStep) body. `count` and the limit
/// are INT or UNSIGNED_INT of one element; the body may read `count`.
poplar::program::Sequence countedForLoop(poplar::Graph& graph, const poplar::Tensor& count,
                                         int initialCount, const poplar::Tensor& countLimit,
                                         int countStep, const poplar::program::Program& body,
                                         const poplar::DebugContext& debugContext = {});
poplar::program::Sequence countedForLoop(poplar::Graph& graph, int initialCount,
                                         const poplar::Tensor& countLimit, int countStep,
                                         const poplar::program::Program& body,
                                         const poplar::DebugContext& debugContext = {});

}  // namespace popops
