#include "poplin/Cholesky.hpp"

#include "poplin/internal/Matrices.hpp"
#include "popops/DynamicSlice.hpp"
#include "popops/Loop.hpp"

namespace poplin {

namespace expr = popops::expr;
using poplar::DebugContext;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;

std::vector<std::pair<MatMulParams, poplar::OptionFlags>> getCholeskyMatMulPrePlanParameters(
    const poplar::Type&, const std::vector<std::size_t>&, bool, std::size_t, poplar::OptionFlags) {
  return {};
}

Tensor createCholeskyInput(Graph& graph, const poplar::Type& type,
                           const std::vector<std::size_t>& shape, bool, std::size_t,
                           const DebugContext& debugContext, const poplar::OptionFlags&,
                           PlanningCache*) {
  return graph.addVariable(type, shape, poplar::VariableMappingMethod::LINEAR, debugContext);
}

void choleskyInPlace(Graph& graph, const Tensor& a, bool lower, std::size_t, Sequence& prog,
                     const DebugContext& debugContext, poplar::OptionFlags, PlanningCache*) {
  internal::checkSquare("cholesky", a);
  const DebugContext context{debugContext, "cholesky"};
  // U^T U = A reads and writes the transposed view as L L^T does.
  const Tensor items = internal::asItems(
      lower ? a
            : a.dimRoll(static_cast<unsigned>(a.rank()) - 1, static_cast<unsigned>(a.rank()) - 2));
  const std::size_t n = items.dim(1);
  if (items.numElements() == 0) return;
  const Tensor rest = internal::spreadCopy(graph, items, prog, context);
  const Tensor row = internal::numbers(graph, n, context).expand({1});  // [n, 1]
  prog.add(popops::countedLoop(
      graph, n,
      [&](const Tensor& step) {
        Sequence body;
        const auto column = popops::dynamicSlice(graph, rest, step, {2}, {1}, body, context);
        const auto pivot = popops::dynamicSlice(graph, column, step, {1}, {1}, body, context);
        const expr::Const zero(a.elementType(), 0.0f);
        const auto factor = popops::map(
            graph, expr::Select(expr::_1 / expr::Sqrt(expr::_2), zero, expr::_3 >= expr::_4),
            {column, pivot, row, step}, body, context);
        popops::mapInPlace(graph, expr::_1 - expr::_2 * expr::_3,
                           {rest, factor, factor.dimShuffle({0, 2, 1})}, body, context);
        popops::dynamicUpdate(graph, items, factor, step, {2}, {1}, body, context);
        return body;
      },
      context));
}

Tensor cholesky(Graph& graph, const Tensor& a, bool lower, std::size_t blockSize, Sequence& prog,
                const DebugContext& debugContext, poplar::OptionFlags options,
                PlanningCache* cache) {
  internal::checkSquare("cholesky", a);
  const Tensor factor = internal::spreadCopy(graph, a, prog, {debugContext, "cholesky"});
  choleskyInPlace(graph, factor, lower, blockSize, prog, debugContext, options, cache);
  return factor;
}

}  // namespace poplin
