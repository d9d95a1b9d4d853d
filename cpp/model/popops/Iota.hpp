#pragma once
#include <cstdint>
#include <type_traits>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace popops {

/// For the library: t = start + the index along `dim`, of any type but BOOL.
void iotaAlong(poplar::Graph& graph, const poplar::Tensor& t, unsigned dim, std::int64_t start,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext);

/// t[i] = startInteger + i, for a tensor of rank 1.
template <typename T, class = std::enable_if_t<std::is_integral_v<T>>>
void iota(poplar::Graph& graph, const poplar::Tensor& t, T startInteger,
          poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {}) {
  iotaAlong(graph, t, 0, static_cast<std::int64_t>(startInteger), prog, debugContext);
}

}  // namespace popops
