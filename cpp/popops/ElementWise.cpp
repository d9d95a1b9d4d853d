#include "popops/ElementWise.hpp"

#include "poplar/exceptions.hpp"
#include "popops/internal/Map.hpp"

namespace popops {

poplar::Tensor map(poplar::Graph& graph, const expr::Expr& expr,
                   const std::vector<poplar::Tensor>& ts, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext, const poplar::OptionFlags&) {
  return internal::map(graph, {expr}, ts, prog, debugContext).front();
}

void mapInPlace(poplar::Graph& graph, const expr::Expr& expr, const std::vector<poplar::Tensor>& ts,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                const poplar::OptionFlags& options) {
  if (ts.empty())
    throw poplar::poplar_error(
        "[popops::mapInPlace] needs at least one tensor; got none. Pass the tensor to change "
        "first.");
  mapWithOutput(graph, expr, ts, ts.front(), prog, debugContext, options);
}

void mapWithOutput(poplar::Graph& graph, const expr::Expr& expr,
                   const std::vector<poplar::Tensor>& ts, const poplar::Tensor& out,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                   const poplar::OptionFlags&) {
  internal::mapWithOutputs(graph, {expr}, ts, {out}, prog, debugContext);
}

}  // namespace popops
