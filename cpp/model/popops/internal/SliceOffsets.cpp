#include "popops/internal/SliceOffsets.hpp"

#include "popops/ElementWise.hpp"
#include "popops/Expr.hpp"
#include "popops/Reduce.hpp"

namespace popops::internal {

using poplar::Tensor;

SliceOffsets::SliceOffsets(const Tensor& t, const std::vector<std::size_t>& dims,
                           const std::vector<std::size_t>& sizes,
                           const poplar::OptionFlags& options)
    : options_(sliceOptions(options)) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    limits_.push_back(static_cast<unsigned>(t.dim(static_cast<unsigned>(dims[i]))));
    last_.push_back(limits_[i] - static_cast<unsigned>(sizes[i]));
  }
}

Tensor SliceOffsets::prepared(poplar::Graph& graph, const Tensor& offsets,
                              poplar::program::Sequence& prog,
                              const poplar::DebugContext& debugContext) const {
  const bool remaps = options_.remaps_to_zero;
  if ((!remaps && !options_.validates_indices) || offsets.numElements() == 0) return offsets;
  const unsigned dim = offsets.rank() - 1;
  std::vector<Tensor> made;
  for (std::size_t i = 0; i < last_.size(); ++i) {
    const Tensor column = offsets.slice(i, i + 1, dim).reinterpret(poplar::UNSIGNED_INT);
    expr::Any good = expr::_1 <= expr::Const(last_[i]);
    if (options_.has_padding_index) good = good || expr::_1 == expr::Const(limits_[i]);
    const expr::Any what =
        remaps ? expr::Any(expr::Select(expr::_1, expr::Const(0U), good)) : expr::Any(!good);
    made.push_back(map(graph, what, {column}, prog, debugContext));
  }
  const Tensor all = poplar::concat(made, dim);
  if (remaps) return all;
  const Tensor bad = reduce(graph, all.flatten(), poplar::BOOL, {0}, {Operation::LOGICAL_OR}, prog,
                            {debugContext, "validateIndices"});
  prog.add(poplar::program::AbortOnCondition(
      bad, "[popops] needs indices inside of the table (validateIndices); got one outside."));
  return offsets;
}

void SliceOffsets::clearPadding(poplar::Graph& graph, const Tensor& out, const Tensor& offsets,
                                poplar::program::Sequence& prog,
                                const poplar::DebugContext& debugContext) const {
  if (!options_.has_padding_index || out.numElements() == 0) return;
  const unsigned dim = offsets.rank() - 1;
  const bool is_quarter = out.elementType() == poplar::QUARTER;
  const Tensor elements = is_quarter ? out.reinterpret(poplar::UNSIGNED_CHAR) : out;
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    Tensor column = offsets.slice(i, i + 1, dim).squeeze({dim}).reinterpret(poplar::UNSIGNED_INT);
    while (column.rank() < elements.rank()) column = column.expand({column.rank()});
    for (unsigned d = dim; d < elements.rank(); ++d)
      column = column.broadcast(static_cast<unsigned>(elements.dim(d)), d);
    const auto zero = expr::Cast(expr::Const(0), elements.elementType());
    mapInPlace(graph, expr::Select(zero, expr::_1, expr::_2 == expr::Const(limits_[i])),
               {elements, column}, prog, {debugContext, "padding"});
  }
}

}  // namespace popops::internal
