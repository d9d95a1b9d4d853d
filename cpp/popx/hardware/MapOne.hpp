#pragma once
#include "popx/Map.hpp"

/// For the library.
namespace popx {

/// popx::map of one expression.
inline poplar::Tensor mapOne(poplar::Graph& graph, const expr::Expr& e,
                             const std::vector<poplar::Tensor>& ts, poplar::program::Sequence& prog,
                             const poplar::DebugContext& debugContext = {}) {
  return map(graph, {e}, ts, prog, debugContext)[0];
}

}  // namespace popx
