#include "popops/internal/Scatter.hpp"

#include <algorithm>

#include "engine/graph/Emit.hpp"
#include "engine/kernels/reduce/ReduceKernels.hpp"
#include "popops/internal/ExprCompile.hpp"
#include "popops/internal/WindowCost.hpp"
#include "poputil/exceptions.hpp"

namespace popops::internal {
namespace {

namespace reduction = ipujax::engine::reduction;
using ipujax::engine::Access;
using ipujax::engine::expr::ExprBuilder;
using ipujax::engine::expr::ExprProgram;

[[noreturn]] void refuse(const std::string& needs, const poplar::Tensor& operand,
                         const poplar::Tensor& indices, const poplar::Tensor& updates) {
  throw poputil::poplibs_error("[popops::scatter] needs " + needs + "; got operand " +
                               operand.shapeToString() + ", indices " + indices.shapeToString() +
                               ", updates " + updates.shapeToString() +
                               ". Check the scatter's dimension numbers.");
}

/// "replace" of several operands: output i is update i.
ExprProgram replaceAll(const std::vector<poplar::Tensor>& operands) {
  std::vector<ipujax::engine::ElementType> types;
  for (int twice = 0; twice < 2; ++twice) {
    for (const auto& t : operands) types.push_back(t.elementType().element());
  }
  ExprBuilder builder(types);
  for (std::size_t i = 0; i < operands.size(); ++i)
    builder.output(builder.input(operands.size() + i));
  return builder.build();
}

void checkOperands(const std::vector<poplar::Tensor>& operands, const poplar::Tensor& indices,
                   const std::vector<poplar::Tensor>& updates) {
  if (operands.empty() || operands.size() != updates.size()) {
    throw poputil::poplibs_error("[popops::scatter] needs one updates tensor per operand; got " +
                                 std::to_string(operands.size()) + " operands and " +
                                 std::to_string(updates.size()) + " updates. Pass one for each.");
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].shape() != operands[0].shape() || updates[i].shape() != updates[0].shape())
      refuse("operands of one shape and updates of one shape", operands[i], indices, updates[i]);
    if (operands[i].elementType() != updates[i].elementType())
      refuse("updates of their operand's type", operands[i], indices, updates[i]);
  }
}

WindowSpec makeSpec(const poplar::Tensor& operand, const poplar::Tensor& indices,
                    const poplar::Tensor& starts, const poplar::Tensor& updates,
                    const ScatterDims& dims, std::vector<unsigned>& canonical) {
  WindowSpec spec;
  spec.outside = ipujax::engine::Outside::kSkip;
  spec.map = dims.scatter_dims_to_operand_dims;
  spec.sizes.assign(operand.rank(), 1);
  spec.window = otherDims(operand.rank(), dims.inserted_window_dims, dims.input_batching_dims);
  if (spec.window.size() != dims.update_window_dims.size())
    refuse("one update window dimension per window dimension", operand, indices, updates);
  for (auto d : dims.update_window_dims) {
    if (d < 0 || d >= static_cast<std::int64_t>(updates.rank()))
      refuse("update window dimensions within the updates' rank", operand, indices, updates);
  }
  const auto batch_at = otherDims(updates.rank(), dims.update_window_dims);
  canonical.assign(batch_at.begin(), batch_at.end());
  if (canonical.size() + 1 != starts.rank())
    refuse("updates with the indices' batch dimensions", operand, indices, updates);
  spec.batching = batchingOf(canonical.size(), dims.index_vector_dim,
                             dims.scatter_indices_batching_dims, dims.input_batching_dims);
  for (std::size_t w = 0; w < spec.window.size(); ++w) {
    const auto at = static_cast<unsigned>(dims.update_window_dims[w]);
    canonical.push_back(at);
    spec.sizes[spec.window[w]] = static_cast<std::int64_t>(updates.dim(at));
  }
  return spec;
}

}  // namespace

ScatterBody::ScatterBody(ExprProgram expression) : name("expr"), program(std::move(expression)) {
  const bool single = program.numInputs() == 2 && program.numOutputs() == 1;
  if (!single) return;
  if (program.isInput(1)) {
    name = "replace";
    return;
  }
  const auto reducer = reduction::reducerOf(program);
  if (reducer && *reducer != reduction::Reducer::kXor) name = reduction::nameOf(*reducer);
}

void scatterWindows(poplar::Graph& graph, const std::string& name,
                    const std::vector<poplar::Tensor>& operands, const poplar::Tensor& indices,
                    const std::vector<poplar::Tensor>& updates, const poplar::Tensor* scale,
                    const WindowSpec& spec, const ScatterBody& body, bool unique,
                    const ipujax::engine::Cost& cost, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext) {
  ipujax::engine::StepSpec step;
  step.kernel = name;
  const bool several = operands.size() > 1;
  for (const auto& t : operands) step.operands.push_back({t, Access::kReadWrite, several});
  step.operands.push_back({indices, Access::kRead});
  for (const auto& t : updates) step.operands.push_back({t, Access::kRead, several});
  if (scale) step.operands.push_back({*scale, Access::kRead});
  const bool replaces_all = several && body.name == "replace";
  step.attributes.set("body", replaces_all ? std::string("expr") : body.name);
  if (replaces_all) {
    step.attributes.set("expr", replaceAll(operands).toIntegers());
  } else if (body.name == "expr") {
    step.attributes.set("expr", body.program.toIntegers());
  }
  step.attributes.set("unique", std::int64_t{unique});
  spec.addTo(step.attributes);
  step.cost = cost;
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
}

void scatter(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
             const poplar::Tensor& indices, const std::vector<poplar::Tensor>& updates,
             const ScatterDims& dims, const ScatterBody& body, poplar::program::Sequence& prog,
             const poplar::DebugContext& debugContext) {
  checkOperands(operands, indices, updates);
  if (dims.index_vector_dim < 0 ||
      dims.index_vector_dim > static_cast<std::int64_t>(indices.rank()))
    refuse("an index_vector_dim within the indices' rank", operands[0], indices, updates[0]);
  const poplar::Tensor starts = canonicalIndices(indices, dims.index_vector_dim);
  if (starts.dim(starts.rank() - 1) != dims.scatter_dims_to_operand_dims.size())
    refuse("an index vector as long as scatter_dims_to_operand_dims", operands[0], indices,
           updates[0]);
  std::vector<unsigned> canonical;
  const WindowSpec spec = makeSpec(operands[0], indices, starts, updates[0], dims, canonical);
  std::vector<poplar::Tensor> shuffled;
  for (const auto& t : updates) shuffled.push_back(t.dimShuffle(canonical));

  SliceProblem problem;
  for (auto d : spec.window) problem.elements *= static_cast<std::uint64_t>(spec.sizes[d]);
  if (problem.elements > 0) {
    problem.rows = std::max<std::uint64_t>(1, operands[0].numElements() / problem.elements);
    problem.lookups = updates[0].numElements() / problem.elements;
  }
  problem.coordinates = spec.map.size();
  problem.work = body.name == "replace" ? SliceWork::kWrite : SliceWork::kAccumulate;
  if (body.name == "expr") {
    // popops: popopsCycleEstimators.cpp: an elementwise vertex takes about 3 cycles per vector and
    // op.
    problem.extra_cycles_per_vector = 3.0 * static_cast<double>(body.program.instructions().size());
  }
  ipujax::engine::Cost cost;
  for (std::size_t i = 0; i < operands.size(); ++i)
    cost += sliceCost(graph, operands[i], updates[i], problem);
  scatterWindows(graph, "popx.scatter", operands, starts, shuffled, nullptr, spec, body,
                 dims.unique_indices, cost, prog, debugContext);
}

void scatter(poplar::Graph& graph, const std::vector<poplar::Tensor>& operands,
             const poplar::Tensor& indices, const std::vector<poplar::Tensor>& updates,
             const ScatterDims& dims, const std::vector<popops::expr::Expr>& body,
             poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  std::vector<poplar::Type> types;
  for (const auto& t : operands) types.push_back(t.elementType());
  for (const auto& t : updates) types.push_back(t.elementType());
  scatter(graph, operands, indices, updates, dims, ScatterBody(compileExpr(body, types)), prog,
          debugContext);
}

}  // namespace popops::internal
