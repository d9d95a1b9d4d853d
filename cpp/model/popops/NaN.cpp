#include "popops/NaN.hpp"

#include "popops/ElementWise.hpp"
#include "popops/Reduce.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

poplar::Tensor any(poplar::Graph& graph, const char* where, const expr::Expr& predicate,
                   const poplar::Tensor& src, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext) {
  if (src.elementType() != poplar::FLOAT && src.elementType() != poplar::HALF) {
    throw poputil::poplibs_error(std::string("[popops::") + where +
                                 "] needs a tensor of FLOAT or HALF; got " +
                                 src.elementType().toString() + ". Only these have NaN.");
  }
  const poplar::DebugContext context{debugContext, where};
  const auto found = map(graph, predicate, {src.flatten()}, prog, context);
  return reduce(graph, found, {0}, Operation::LOGICAL_OR, prog, context);
}

}  // namespace

poplar::Tensor hasNaN(poplar::Graph& graph, const poplar::Tensor& src,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  return any(graph, "hasNaN", expr::IsNaN(expr::_1), src, prog, debugContext);
}

poplar::Tensor hasNaNOrInf(poplar::Graph& graph, const poplar::Tensor& src,
                           poplar::program::Sequence& prog,
                           const poplar::DebugContext& debugContext) {
  return any(graph, "hasNaNOrInf", expr::Not(expr::IsFinite(expr::_1)), src, prog, debugContext);
}

}  // namespace popops
