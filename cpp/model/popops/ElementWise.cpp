#include "popops/ElementWise.hpp"

#include <ostream>
#include <string>

#include "popops/internal/ExprCompile.hpp"
#include "popops/internal/Map.hpp"
#include "popops/internal/MapCodelet.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

using Tensors = std::vector<poplar::Tensor>;

std::vector<expr::Expr> plain(const std::vector<expr::Any>& exprs) {
  return {exprs.begin(), exprs.end()};
}

/// Whether forceGenerateCodelet asks for a separate vertex for a single operation. It changes only
/// the vertex name in reports, not the values.
bool isGenerated(const poplar::OptionFlags& options) {
  bool generated = false;
  for (const auto& [option, value] : options)
    if (option == "forceGenerateCodelet") generated = value == "true";
  return generated;
}

bool isReal(poplar::Type type) { return type == poplar::FLOAT || type == poplar::HALF; }

/// The expression that converts a deviation; `epsilon` is _2 or a constant.
expr::Expr deviationExpr(expr::BinaryOpType op, const expr::Expr& epsilon, poplar::Type from,
                         poplar::Type to) {
  if (from == to) return expr::BinaryOp(op, expr::_1, epsilon);
  const poplar::Type type = poplar::FLOAT;
  return expr::Cast(expr::BinaryOp(op, expr::Cast(expr::_1, type), expr::Cast(epsilon, type)), to);
}

/// Throws unless `src` is real and `to`, the result's type, is its own type or `other`.
void checkDeviation(const char* function, const poplar::Tensor& src, poplar::Type to,
                    poplar::Type other) {
  const poplar::Type from = src.elementType();
  if (isReal(from) && (to == from || to == other)) return;
  throw poputil::poplibs_error(std::string("[popops::") + function +
                               "] needs FLOAT or HALF, and a result of the same type or of " +
                               other.toString() + "; got " + from.toString() + " and " +
                               to.toString() + ". Cast before or after.");
}

poplar::Tensor convertDeviation(const char* function, poplar::Graph& graph, expr::BinaryOpType op,
                                const poplar::Tensor& src, const poplar::Tensor& epsilon,
                                poplar::program::Sequence& prog, poplar::Type to,
                                const poplar::DebugContext& debugContext) {
  if (epsilon.numElements() != 1 || epsilon.elementType() != src.elementType())
    throw poputil::poplibs_error(std::string("[popops::") + function +
                                 "] needs an epsilon of one element of " +
                                 src.elementType().toString() + "; got " + epsilon.shapeToString() +
                                 " of " + epsilon.elementType().toString() + ". Pass a scalar.");
  return map(graph, deviationExpr(op, expr::_2, src.elementType(), to), {src, epsilon.reshape({})},
             prog, debugContext);
}

}  // namespace

poplar::Tensor map(poplar::Graph& graph, const expr::Expr& expr,
                   const std::vector<poplar::Tensor>& ts, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  return internal::map(graph, {expr}, ts, prog, debugContext, isGenerated(options)).front();
}

void mapInPlace(poplar::Graph& graph, const expr::Expr& expr, const std::vector<poplar::Tensor>& ts,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                const poplar::OptionFlags& options) {
  if (ts.empty())
    throw poputil::poplibs_error(
        "[popops::mapInPlace] needs at least one tensor; got none. Pass the tensor to change "
        "first.");
  std::vector<poplar::Type> types;
  for (const auto& t : ts) types.push_back(t.elementType());
  const poplar::Type made(internal::compileExpr({expr}, types).outputTypes().front());
  const bool converts = made != types.front();
  mapWithOutput(graph, converts ? expr::Cast(expr, types.front()) : expr, ts, ts.front(), prog,
                debugContext, options);
}

void mapWithOutput(poplar::Graph& graph, const expr::Expr& expr,
                   const std::vector<poplar::Tensor>& ts, const poplar::Tensor& out,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                   const poplar::OptionFlags& options) {
  internal::mapWithOutputs(graph, {expr}, ts, {out}, prog, debugContext, {}, isGenerated(options));
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
            const poplar::OptionFlags& options) {
  return internal::map(graph, plain(exprs), ts, prog, debugContext, isGenerated(options));
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
                   const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  if (exprs.size() != outs.size())
    throw poputil::poplibs_error(
        "[popops::mapWithOutput] needs one output for each expression; got " +
        std::to_string(exprs.size()) + " expressions and " + std::to_string(outs.size()) +
        " outputs. Pass as many.");
  internal::mapWithOutputs(graph, plain(exprs), ts, outs, prog, debugContext, {},
                           isGenerated(options));
}

poplar::Tensor varianceToInvStdDev(poplar::Graph& graph, const poplar::Tensor& src,
                                   const poplar::Tensor& epsilon, poplar::program::Sequence& prog,
                                   poplar::Type dstType, const poplar::DebugContext& debugContext) {
  checkDeviation("varianceToInvStdDev", src, dstType, poplar::HALF);
  return convertDeviation("varianceToInvStdDev", graph, expr::BinaryOpType::VARIANCE_TO_INV_STD_DEV,
                          src, epsilon, prog, dstType, debugContext);
}

poplar::Tensor varianceToInvStdDev(poplar::Graph& graph, const poplar::Tensor& src, float epsilon,
                                   poplar::program::Sequence& prog, poplar::Type dstType,
                                   const poplar::DebugContext& debugContext) {
  checkDeviation("varianceToInvStdDev", src, dstType, poplar::HALF);
  return map(graph,
             deviationExpr(expr::BinaryOpType::VARIANCE_TO_INV_STD_DEV, expr::Const(epsilon),
                           src.elementType(), dstType),
             {src}, prog, debugContext);
}

poplar::Tensor invStdDevToVariance(poplar::Graph& graph, const poplar::Tensor& src,
                                   const poplar::Tensor& epsilon, poplar::program::Sequence& prog,
                                   poplar::Type dstType, const poplar::DebugContext& debugContext) {
  checkDeviation("invStdDevToVariance", src, dstType, poplar::FLOAT);
  return convertDeviation("invStdDevToVariance", graph, expr::BinaryOpType::INV_STD_DEV_TO_VARIANCE,
                          src, epsilon, prog, dstType, debugContext);
}

poplar::Tensor invStdDevToVariance(poplar::Graph& graph, const poplar::Tensor& src, float epsilon,
                                   poplar::program::Sequence& prog, poplar::Type dstType,
                                   const poplar::DebugContext& debugContext) {
  checkDeviation("invStdDevToVariance", src, dstType, poplar::FLOAT);
  return map(graph,
             deviationExpr(expr::BinaryOpType::INV_STD_DEV_TO_VARIANCE, expr::Const(epsilon),
                           src.elementType(), dstType),
             {src}, prog, debugContext);
}

}  // namespace popops
