#pragma once
#include <vector>

#include "engine/Cost.hpp"
#include "engine/kernels/sort/SortKeys.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "popops/Expr.hpp"

namespace popops::internal {

/// Sorts several tensors of one shape together along `dim`. The comparator says whether the left
/// element comes first: placeholders (1, 2) are operand 0's left and right, (3, 4) operand 1's ...
/// The sort is always stable (`stable` is what the program asked for). A comparator that is a
/// plain or lexicographic < or > becomes sort keys; any other runs in a merge sort. On hardware: a
/// bitonic network of compare-and-swap vertices (poplibs popops bitonic top-k).
std::vector<poplar::Tensor> sort(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
                                 unsigned dim, const popops::expr::Expr& comparator, bool stable,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext = {});
/// The same by keys, most significant first.
std::vector<poplar::Tensor> sort(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
                                 unsigned dim, const std::vector<ipujax::engine::SortKey>& keys,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext = {});

/// For the library: cycles and bytes of a bitonic sort of `rows` rows of `n` elements that leaves
/// the first `kept` in order.
ipujax::engine::Cost bitonicCost(const poplar::Graph& graph, std::uint64_t rows, std::uint64_t n,
                                 std::uint64_t kept, std::size_t element_bytes,
                                 double comparator_cycles);

}  // namespace popops::internal
