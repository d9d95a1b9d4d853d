#pragma once
#include <vector>

#include "engine/Cost.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Tensor.hpp"

namespace popops::internal {

/// Cycles that a vertex takes to combine elements.
struct VertexRate {
  explicit VertexRate(const poplar::Target& target) : workers(target.getNumWorkerContexts()) {}

  double cycles_per_vector = 1;  ///< worker cycles per `vector` elements
  double vector = 2;             ///< elements
  double cycles_per_output = 12;
  double workers;  ///< of a tile
};
/// Poplibs' reduction vertices: one 64-bit vector a cycle, scalar for integers.
VertexRate reduceRate(const poplar::Target& target, const poplar::Type& type);

/// Plans a reduction of `in` over `dims` to `out`: all on the outputs' tiles, or first where the
/// elements lie and then the partials on the outputs' tiles, whichever takes fewer cycles. `local`:
/// each output is on the tile that has all of its elements, and nothing is exchanged.
ipujax::engine::Cost reduceCost(const poplar::Graph& graph, const poplar::Tensor& in,
                                const std::vector<std::size_t>& dims, const poplar::Tensor& out,
                                std::size_t partial_bytes, const VertexRate& rate,
                                bool local = false);

}  // namespace popops::internal
