#include "popx/SelectAndScatter.hpp"

#include "poplar/exceptions.hpp"
#include "popx/ReduceBody.hpp"

namespace popx {
using native::ElementType;
using native::ExprProgram;

namespace {

[[noreturn]] void refuse(const std::string& needs, const std::string& got, const std::string& fix) {
  throw poplar::poplar_error("[popx::selectAndScatter] needs " + needs + "; got " + got + ". " +
                             fix);
}

}  // namespace

poplar::Tensor selectAndScatter(poplar::Graph& graph, const poplar::Tensor& operand,
                                const poplar::Tensor& source, const poplar::Tensor& init,
                                const popops::expr::Expr& select, const popops::expr::Expr& scatter,
                                const Window& given, poplar::program::Sequence& prog,
                                const poplar::DebugContext& debugContext) {
  const auto window = checkedWindow("popx::selectAndScatter", given, operand.rank());
  for (std::size_t d = 0; d < window.rank(); ++d) {
    if (window.base_dilations[d] != 1 || window.window_dilations[d] != 1) {
      refuse("a window without dilation", "one", "Dilate the operand first.");
    }
  }
  const auto shape = native::windowOutputShape(operand, window);
  if (shape != source.shape()) {
    refuse("one source value a window", source.shapeToString() + " for " + operand.shapeToString(),
           "Check the window.");
  }
  const poplar::Type type = operand.elementType();
  if (source.elementType() != type || init.elementType() != type || init.numElements() != 1) {
    refuse("one type, and a scalar initial value",
           type.toString() + ", " + source.elementType().toString() + ", " +
               init.elementType().toString(),
           "Cast them.");
  }
  const ExprProgram select_program = native::compileExpr({select}, {type, type});
  const ExprProgram scatter_program = native::compileExpr({scatter}, {type, type});
  if (select_program.outputTypes()[0] != ElementType::kBool ||
      scatter_program.outputTypes()[0] != type.element()) {
    refuse("select to give BOOL and scatter the operand's type",
           poplar::Type(select_program.outputTypes()[0]).toString() + " and " +
               poplar::Type(scatter_program.outputTypes()[0]).toString(),
           "Check the expressions.");
  }
  poplar::Tensor out = graph.clone(operand, {debugContext, "scattered"},
                                   poplar::TensorCloneMethod::CREATE_NEW_ORDER);
  native::StepSpec spec;
  spec.kernel = "popx.select_and_scatter";
  spec.operands = {{operand, native::Access::kRead, false},
                   {source, native::Access::kRead, false},
                   {init, native::Access::kRead, true},
                   {out, native::Access::kWrite, true}};
  spec.attributes.set("window", window.toIntegers())
      .set("select", select_program.toIntegers())
      .set("scatter", scatter_program.toIntegers());
  // popnnCycleEstimators.cpp: 7 + 5 n cycles a vector for the backward pass.
  spec.cost = native::windowCost(graph, operand, source, window, 5);
  native::emit(graph, prog, std::move(spec), {debugContext, "selectAndScatter"});
  return out;
}

}  // namespace popx
