#include "popx/Map.hpp"

#include "popops/ElementWise.hpp"

namespace popx {

std::vector<poplar::Tensor> map(poplar::Graph& graph, const std::vector<popops::expr::Expr>& exprs,
                                const std::vector<poplar::Tensor>& ts,
                                poplar::program::Sequence& prog,
                                const poplar::DebugContext& debugContext) {
  std::vector<poplar::Tensor> results;
  for (const auto& expr : exprs)
    results.push_back(popops::map(graph, expr, ts, prog, debugContext));
  return results;
}

}  // namespace popx
