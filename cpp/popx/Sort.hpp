#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popx/Expr.hpp"

namespace popx {

/// How floating keys compare. Integers and bool have one order.
enum class FloatOrder : std::uint8_t {
  kTotal,      ///< by sign and magnitude: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN
  kCanonical,  ///< -0 == +0, and every NaN equal and after all else: jax.lax.sort's comparator
};

/// One key of a lexicographic order.
struct SortKey {
  std::size_t operand = 0;
  bool descending = false;
  FloatOrder order = FloatOrder::kCanonical;
};

/// Sorts several tensors of one shape together along `dim`. The comparator says whether the left
/// element comes first: placeholders (1, 2) are operand 0's left and right, (3, 4) operand 1's ...
/// The sort is always stable (`stable` is what the program asked for). On hardware: a network of
/// compares and exchanges (K. E. Batcher, "Sorting networks and their applications", 1968), each of
/// them popops::map.
std::vector<poplar::Tensor> sort(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
                                 unsigned dim, const expr::Expr& comparator, bool stable,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext = {});
/// The same by keys, most significant first.
std::vector<poplar::Tensor> sort(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
                                 unsigned dim, const std::vector<SortKey>& keys,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext = {});

}  // namespace popx
