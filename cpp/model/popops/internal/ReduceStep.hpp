#pragma once
#include <cstddef>
#include <vector>

#include "engine/kernels/reduce/ReduceKernels.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops::internal {

/// Options of a step "popops.reduce", which combines the elements of `dims`.
struct ReduceStep {
  ipujax::engine::reduction::Reducer reducer;
  bool update = false;                    ///< adds to the output's value
  const poplar::Tensor* scale = nullptr;  ///< FLOAT scalar; the sum is multiplied by it
  const poplar::Tensor* init = nullptr;   ///< scalar of the input's type, applied once, first
  double cycles_per_vector = 0;           ///< 0: that of the type
  bool is_local = false;                  ///< every output is on the tile of all of its elements
};

/// Adds the step. `out` has the dimensions that are kept.
void emitReduce(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
                const std::vector<std::size_t>& dims, const ReduceStep& step,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext);

}  // namespace popops::internal
