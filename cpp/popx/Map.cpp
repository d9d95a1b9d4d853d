#include "popx/Map.hpp"

#include "popx/Native.hpp"

namespace popx {

std::vector<poplar::Tensor> map(poplar::Graph& graph, const std::vector<popops::expr::Expr>& exprs,
                                const std::vector<poplar::Tensor>& ts,
                                poplar::program::Sequence& prog,
                                const poplar::DebugContext& debugContext) {
  return popops::internal::map(graph, exprs, ts, prog, debugContext);
}

}  // namespace popx
