#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popx/Expr.hpp"

namespace popx {

/// The dimension numbers of an XLA scatter.
struct ScatterDims {
  std::vector<std::int64_t> update_window_dims;
  std::vector<std::int64_t> inserted_window_dims;
  std::vector<std::int64_t> input_batching_dims;
  std::vector<std::int64_t> scatter_indices_batching_dims;
  std::vector<std::int64_t> scatter_dims_to_operand_dims;
  std::int64_t index_vector_dim = 0;
  bool unique_indices = false;
  bool indices_are_sorted = false;
};

/// popops::scatter with batching dimensions, indices of any integer type, and a computation:
/// combines windows of `operands` with `updates`, in place, as XLA's scatter says. Windows that do
/// not lie inside the operand are skipped, updates are applied in order. `body` has one expression
/// for each of n operands, of (operand 0, ..., operand n-1, update 0, ..., update n-1). On
/// hardware: a loop over the windows, of popops::dynamicSlice, map and dynamicUpdate.
void scatter(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
             const poplar::Tensor& indices, const std::vector<poplar::Tensor>& updates,
             const ScatterDims& dims, const std::vector<expr::Expr>& body,
             poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

/// The same of one operand with a body that has a name: "replace", "add", "mul", "min", "max",
/// "and" or "or".
void scatter(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
             const poplar::Tensor& indices, const std::vector<poplar::Tensor>& updates,
             const ScatterDims& dims, const std::string& body, poplar::program::Sequence& prog,
             const poplar::DebugContext& debugContext = {});

}  // namespace popx
