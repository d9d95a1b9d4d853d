#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/Cost.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popops/Expr.hpp"
#include "popops/internal/Gather.hpp"

namespace popops::internal {

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

/// How an element is updated: a name ("replace", "add", "mul", "min", "max", "and", "or"), or a
/// program over (operand 0, ..., operand n-1, update 0, ..., update n-1) with one output for each
/// operand.
struct ScatterBody {
  std::string name = "replace";
  ipujax::engine::expr::ExprProgram program;  ///< used where `name` is "expr"

  ScatterBody(std::string name) : name(std::move(name)) {}  // NOLINT: implicit, for calls
  ScatterBody(const char* name) : name(name) {}             // NOLINT
  /// Recognises the programs that have a name.
  explicit ScatterBody(ipujax::engine::expr::ExprProgram program);
};

/// Combines windows of `operands` with `updates`, in place, as XLA's scatter says: windows that do
/// not lie inside the operand are skipped, updates are applied in order. Indices may be of any
/// integer type. On tiles: multiUpdate or multiUpdateAdd over scatter_dims_to_operand_dims.
void scatter(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
             const poplar::Tensor& indices, const std::vector<poplar::Tensor>& updates,
             const ScatterDims& dims, const ScatterBody& body, poplar::program::Sequence& prog,
             const poplar::DebugContext& debugContext = {});

/// The same with a body of one expression for each operand.
void scatter(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
             const poplar::Tensor& indices, const std::vector<poplar::Tensor>& updates,
             const ScatterDims& dims, const std::vector<popops::expr::Expr>& body,
             poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

/// Emits kernel `name` ("popx.scatter", "popops.dynamic_update", "popops.multi_update") on
/// canonical views: operand window at indices[b..., :] = body(it, updates[b..., w...]). `scale`:
/// null, or the one-element factor of a body named "scaled_add".
void scatterWindows(poplar::Graph& graph, const std::string& name,
                    const std::vector<poplar::Tensor>& operands, const poplar::Tensor& indices,
                    const std::vector<poplar::Tensor>& updates, const poplar::Tensor* scale,
                    const WindowSpec& spec, const ScatterBody& body, bool unique,
                    const ipujax::engine::Cost& cost, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext);

}  // namespace popops::internal
