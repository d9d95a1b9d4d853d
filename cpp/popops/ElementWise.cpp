#include "popops/ElementWise.hpp"

#include <ostream>

#include "popops/internal/Map.hpp"
#include "popops/internal/MapCodelet.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

using Tensors = std::vector<poplar::Tensor>;

std::vector<expr::Expr> plain(const std::vector<expr::Any>& exprs) {
  return {exprs.begin(), exprs.end()};
}

}  // namespace

poplar::Tensor map(poplar::Graph& graph, const expr::Expr& expr,
                   const std::vector<poplar::Tensor>& ts, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext, const poplar::OptionFlags&) {
  return internal::map(graph, {expr}, ts, prog, debugContext).front();
}

void mapInPlace(poplar::Graph& graph, const expr::Expr& expr, const std::vector<poplar::Tensor>& ts,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                const poplar::OptionFlags& options) {
  if (ts.empty())
    throw poputil::poplibs_error(
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

void outputGeneratedCodelet(const poplar::Target&, const expr::Expr& expr, const Tensors& ts,
                            const poplar::OptionFlags&, std::ostream& os) {
  if (ts.empty())
    throw poputil::poplibs_error(
        "[popops::outputGeneratedCodelet] needs at least one tensor; got none. Pass one for each "
        "placeholder.");
  os << internal::codeletOf(expr, ts);
}

Tensors map(poplar::Graph& graph, const std::vector<expr::Any>& exprs, const Tensors& ts,
            poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
            const poplar::OptionFlags&) {
  return internal::map(graph, plain(exprs), ts, prog, debugContext);
}

void mapInPlace(poplar::Graph& graph, const std::vector<expr::Any>& exprs, const Tensors& ts,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                const poplar::OptionFlags& options) {
  if (exprs.size() > ts.size())
    throw poputil::poplibs_error("[popops::mapInPlace] needs a tensor for each expression; got " +
                                 std::to_string(exprs.size()) + " expressions and " +
                                 std::to_string(ts.size()) +
                                 " tensors. Pass the tensors to change first.");
  const auto count = static_cast<std::ptrdiff_t>(exprs.size());
  mapWithOutput(graph, exprs, ts, Tensors(ts.begin(), ts.begin() + count), prog, debugContext,
                options);
}

void mapWithOutput(poplar::Graph& graph, const std::vector<expr::Any>& exprs, const Tensors& ts,
                   const Tensors& outs, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext, const poplar::OptionFlags&) {
  if (exprs.size() != outs.size())
    throw poputil::poplibs_error(
        "[popops::mapWithOutput] needs one output for each expression; got " +
        std::to_string(exprs.size()) + " expressions and " + std::to_string(outs.size()) +
        " outputs. Pass as many.");
  internal::mapWithOutputs(graph, plain(exprs), ts, outs, prog, debugContext);
}

}  // namespace popops
