#include "popx/ReduceWindow.hpp"

#include "poputil/TileMapping.hpp"
#include "popx/ReduceBody.hpp"

namespace popx {

using poplar::Tensor;

native::Window checkedWindow(const char* where, const Window& window, std::size_t rank) {
  const native::Window same{window.sizes,          window.strides,
                            window.base_dilations, window.window_dilations,
                            window.padding_low,    window.padding_high};
  same.check(where, rank);
  return same;
}

std::vector<Tensor> reduceWindow(poplar::Graph& graph, const std::vector<Tensor>& ins,
                                 const std::vector<Tensor>& inits,
                                 const std::vector<popops::expr::Expr>& body, const Window& given,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext) {
  const auto program = compileBody("popx::reduceWindow", body, ins, inits);
  const auto window = checkedWindow("popx::reduceWindow", given, ins[0].rank());
  const auto shape = native::windowOutputShape(ins[0], window);
  std::vector<Tensor> outs;
  for (const Tensor& in : ins) {
    outs.push_back(graph.addVariable(in.elementType(), shape, {debugContext, "windows"}));
    poputil::mapTensorLinearly(graph, outs.back());
  }
  if (const auto named = native::reducerOf(program)) {
    native::reduceWindowNamed(graph, ins[0], outs[0], inits[0], *named, false, window, prog,
                              debugContext);
    return outs;
  }
  native::StepSpec spec;
  spec.kernel = "popx.reduce_window_body";
  for (const Tensor& in : ins) spec.operands.push_back({in, native::Access::kRead, false});
  for (const Tensor& out : outs) spec.operands.push_back({out, native::Access::kWrite, true});
  for (const Tensor& init : inits) spec.operands.push_back({init, native::Access::kRead, true});
  spec.attributes.set("window", window.toIntegers()).set("expr", program.toIntegers());
  const double cycles =
      static_cast<double>(program.instructions().size() + program.numInputs() / 2 + 1);
  spec.cost = native::windowOrScanCost(graph, ins[0], outs[0], window, cycles, cycles);
  native::emit(graph, prog, std::move(spec), {debugContext, "reduceWindow"});
  return outs;
}

}  // namespace popx
