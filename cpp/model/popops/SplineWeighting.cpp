#include "popops/SplineWeighting.hpp"

#include "popops/DynamicSlice.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Reduce.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

using poplar::Tensor;

void check(const Tensor& input, const Tensor& weight, const Tensor& basis, const Tensor& index) {
  const auto type = input.elementType();
  const bool ranks = input.rank() == 2 && weight.rank() == 3 && basis.rank() == 2;
  const bool types = (type == poplar::FLOAT || type == poplar::HALF) &&
                     weight.elementType() == type && basis.elementType() == type &&
                     index.elementType() == poplar::INT;
  if (ranks && types && index.shape() == basis.shape() && basis.dim(0) == input.dim(0) &&
      weight.dim(1) == input.dim(1))
    return;
  throw poputil::poplibs_error(
      "[popops::splineWeighting] needs input [edges, in], weight [kernel, in, out] and basis "
      "[edges, splines] of one type, FLOAT or HALF, and weightIndex of INT like basis; got " +
      input.shapeToString() + ", " + weight.shapeToString() + ", " + basis.shapeToString() +
      " and " + index.shapeToString() + ". Reshape or cast them.");
}

}  // namespace

Tensor splineWeighting(poplar::Graph& graph, const Tensor& input, const Tensor& weight,
                       const Tensor& basis, const Tensor& weightIndex,
                       poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  check(input, weight, basis, weightIndex);
  const poplar::DebugContext context{debugContext, "splineWeighting"};
  const std::size_t edges = basis.dim(0), splines = basis.dim(1);
  const auto numbers = weightIndex.flatten().reinterpret(poplar::UNSIGNED_INT).expand({1});
  const auto rows =
      multiSlice(graph, weight.flatten(1, 3), numbers, {0}, {1}, prog, SlicePlan(), {}, context);
  const auto chosen = rows.reshape({edges, splines, weight.dim(1), weight.dim(2)});
  const auto terms = map(graph, expr::_1 * expr::_2 * expr::_3,
                         {chosen, basis.expand({2, 2}), input.expand({1, 2})}, prog, context);
  return reduce(graph, terms, {1, 2}, Operation::ADD, prog, context);
}

}  // namespace popops
