#include "popops/SequenceSlice.hpp"

#include <string>

#include "popops/DynamicSlice.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Iota.hpp"
#include "popops/Reduce.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

void check(const poplar::Tensor& in, const poplar::Tensor& out, const poplar::Tensor& n,
           const poplar::Tensor& in_offset, const poplar::Tensor& out_offset) {
  const bool are_rows = in.rank() >= 2 && out.rank() >= 2 &&
                        in.elementType() == out.elementType() &&
                        in[0].numElements() == out[0].numElements();
  bool are_runs = true;
  for (const auto& t : {n, in_offset, out_offset}) {
    are_runs = are_runs && t.rank() == 1 && t.dim(0) == n.dim(0) &&
               t.elementType() == poplar::UNSIGNED_INT;
  }
  if (are_rows && are_runs) return;
  throw poputil::poplibs_error(
      "[popops::sequenceSlice] needs tensors of rank 2 or more with rows of one size and type, and "
      "three tensors [n] of UNSIGNED_INT; got " +
      in.shapeToString() + ", " + out.shapeToString() + ", " + n.shapeToString() + ", " +
      in_offset.shapeToString() + " and " + out_offset.shapeToString() + ". Reshape or cast them.");
}

}  // namespace

void sequenceSlice(poplar::Graph& graph, const poplar::Tensor& tIn, const poplar::Tensor& tOut,
                   const poplar::Tensor& tN, const poplar::Tensor& tInOffset,
                   const poplar::Tensor& tOutOffset, bool zeroUnused,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  check(tIn, tOut, tN, tInOffset, tOutOffset);
  const poplar::DebugContext context{debugContext, "sequenceSlice"};
  const auto in = tIn.flatten(1, tIn.rank()), out = tOut.flatten(1, tOut.rank());
  const auto row = graph.addVariable(poplar::UNSIGNED_INT, {out.dim(0)}, context);
  poputil::mapTensorLinearly(graph, row);
  iota(graph, row, 0u, prog, context);
  // For each run and row of the output: 0 outside of the run, else the row of the input plus 1.
  const expr::Sub in_run(expr::_1, expr::_4);  // wraps where the row is before the run
  const expr::Select from(expr::Add(expr::Add(in_run, expr::_3), expr::Const(1u)), expr::Const(0u),
                          expr::Lt(in_run, expr::_2));
  const auto columns = [](const poplar::Tensor& t) { return t.expand({1}); };
  const auto found =
      map(graph, from, {row, columns(tN), columns(tInOffset), columns(tOutOffset)}, prog, context);
  const auto source = reduce(graph, found, {0}, Operation::MAX, prog, context);
  const auto index =
      map(graph, expr::Max(expr::_1, expr::Const(1u)) - expr::Const(1u), {source}, prog, context);
  const auto rows =
      multiSlice(graph, in, index.expand({1}), {0}, {1}, prog, SlicePlan(), {}, context)
          .squeeze({1});
  const expr::NotEqual is_covered(expr::_3, expr::Const(0u));
  const auto zero = expr::Const(in.elementType(), 0);
  const expr::Any other = zeroUnused ? expr::Any(zero) : expr::Any(expr::_1);
  mapInPlace(graph, expr::Select(expr::_2, other, is_covered), {out, rows, source.expand({1})},
             prog, context);
}

}  // namespace popops
