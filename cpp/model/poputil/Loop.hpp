#pragma once
// Older form of popops/Loop.hpp: the debug context comes before the body.
#include <cstddef>
#include <functional>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace poputil {

/// Makes a loop's body, given the tensor that holds the counter: UNSIGNED_INT, one element.
using CountedLoopBodyType = std::function<poplar::program::Program(const poplar::Tensor&)>;

/// for (i = begin; i < end; i += step) body(i). Throws poplibs_error unless begin < end and
/// step > 0.
poplar::program::Sequence countedLoop(poplar::Graph& graph, std::size_t begin, std::size_t end,
                                      std::size_t step, const poplar::DebugContext& debugContext,
                                      const CountedLoopBodyType& body);
/// `count` iterations, counted from 0.
poplar::program::Sequence countedLoop(poplar::Graph& graph, std::size_t count,
                                      const poplar::DebugContext& debugContext,
                                      const CountedLoopBodyType& body);

}  // namespace poputil
