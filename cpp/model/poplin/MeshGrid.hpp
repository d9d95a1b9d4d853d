#pragma once
#include <cstddef>
#include <vector>

#include "poplar/Graph.hpp"

namespace poplin {

/// A constant [count] of FLOAT or HALF: equally spaced numbers from left to right, both included.
poplar::Tensor linspace(poplar::Graph& graph, const poplar::Type& type, float left, float right,
                        std::size_t count, const poplar::DebugContext& debugContext = {});

/// Views [ny, nx]: x [nx] repeated in each row, and y [ny] repeated in each column.
std::vector<poplar::Tensor> meshgrid2d(poplar::Graph& graph, poplar::Tensor x, poplar::Tensor y);

}  // namespace poplin
