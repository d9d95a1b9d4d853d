#include "popx/Sort.hpp"

#include "popx/Native.hpp"

namespace popx {

std::vector<poplar::Tensor> sort(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
                                 unsigned dim, const popops::expr::Expr& comparator, bool stable,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext) {
  return popops::internal::sort(graph, operands, dim, comparator, stable, prog, debugContext);
}

std::vector<poplar::Tensor> sort(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
                                 unsigned dim, const std::vector<SortKey>& keys,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext) {
  std::vector<native::SortKey> same;
  for (const auto& key : keys)
    same.push_back({key.operand, key.descending, static_cast<native::FloatOrder>(key.order)});
  return popops::internal::sort(graph, operands, dim, same, prog, debugContext);
}

}  // namespace popx
