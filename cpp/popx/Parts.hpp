#pragma once
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popx {

using poplar::DebugContext;
using poplar::Graph;
using poplar::program::Sequence;

/// The tensors of one value: {real}, or {real, imaginary} of one shape for complex numbers.
using Parts = std::vector<poplar::Tensor>;

}  // namespace popx
