#pragma once
#include <cstddef>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

/// Helpers for factorizations of matrices, which run in steps over rows or columns.
namespace poplin::internal {

/// Throws poplibs_error unless `a` is [..., n, n] of FLOAT or HALF.
void checkSquare(const char* where, const poplar::Tensor& a);

/// [..., m, n] as [items, m, n], a view.
poplar::Tensor asItems(const poplar::Tensor& a);

/// A copy of `a`, spread over all tiles.
poplar::Tensor spreadCopy(poplar::Graph& graph, const poplar::Tensor& a,
                          poplar::program::Sequence& prog,
                          const poplar::DebugContext& debugContext);

/// 0, 1, ..., n - 1 of UNSIGNED_INT.
poplar::Tensor numbers(poplar::Graph& graph, std::size_t n,
                       const poplar::DebugContext& debugContext);

}  // namespace poplin::internal
