#include "poplin/Cholesky.hpp"

#include <functional>
#include <numeric>
#include <set>

#include "poplin/internal/Matrices.hpp"
#include "popops/DynamicSlice.hpp"
#include "popops/Loop.hpp"
#include "poputil/OptionParsing.hpp"
#include "poputil/exceptions.hpp"

namespace poplin {

namespace expr = popops::expr;
using poplar::DebugContext;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;

constexpr std::size_t kBlockSize = 8;  // PopLibs' default

std::vector<std::pair<MatMulParams, poplar::OptionFlags>> getCholeskyMatMulPrePlanParameters(
    const poplar::Type& type, const std::vector<std::size_t>& shape, bool, std::size_t blockSize,
    poplar::OptionFlags options) {
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2])
    throw poputil::poplibs_error(
        "[poplin::getCholeskyMatMulPrePlanParameters] needs square matrices; got a shape of rank " +
        std::to_string(shape.size()) + ". Use [..., N, N].");
  poplar::OptionFlags of_products;
  for (const auto& [name, value] : options) {
    if (name != "blockSize")
      of_products.set(name, value);
    else if (blockSize == 0)
      blockSize = poplibs::parse::asInteger<std::size_t>(value);
  }
  if (blockSize == 0) blockSize = kBlockSize;
  const std::size_t groups =
      std::accumulate(shape.begin(), shape.end() - 2, std::size_t{1}, std::multiplies<>());
  // Source: PopLibs, Cholesky.cpp. Each step applies the first block's inverse to the rows below
  // it, then updates the rest by the product of the result with itself.
  std::set<MatMulParams> products;
  for (std::size_t n = shape.back(); n > blockSize; n -= blockSize) {
    const std::size_t rest = n - blockSize;
    products.insert({type, type, {groups, rest, blockSize}, {groups, blockSize, blockSize}});
    products.insert({type, type, {groups, rest, blockSize}, {groups, blockSize, rest}});
  }
  std::vector<std::pair<MatMulParams, poplar::OptionFlags>> result;
  for (const auto& product : products) result.emplace_back(product, of_products);
  return result;
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
