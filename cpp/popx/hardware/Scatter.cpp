#include "popx/Scatter.hpp"

#include <algorithm>
#include <map>

#include "poplar/exceptions.hpp"
#include "popops/DynamicSlice.hpp"
#include "popops/Loop.hpp"
#include "popops/Reduce.hpp"
#include "popx/hardware/MapOne.hpp"
#include "popx/hardware/StartIndices.hpp"

namespace popx {
namespace {

namespace pe = expr;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;
using Dims = std::vector<std::int64_t>;
using Sizes = std::vector<std::size_t>;
using Tensors = std::vector<Tensor>;

bool isIn(const Dims& dims, std::int64_t d) { return std::ranges::find(dims, d) != dims.end(); }

/// What does not change from window to window.
struct Plan {
  Plan(const Tensor& operand, const Tensor& update, const ScatterDims& dims) {
    std::size_t next = 0;
    for (unsigned d = 0; d < operand.rank(); ++d) {
      const bool is_one = isIn(dims.inserted_window_dims, d) || isIn(dims.input_batching_dims, d);
      window.push_back(
          is_one ? 1 : update.dim(static_cast<unsigned>(dims.update_window_dims.at(next++))));
    }
    for (unsigned d = 0; d < update.rank(); ++d)
      if (!isIn(dims.update_window_dims, d)) order.push_back(d);
    for (const auto d : dims.update_window_dims) order.push_back(static_cast<unsigned>(d));
    for (const auto d : dims.scatter_dims_to_operand_dims) {
      moved.push_back(static_cast<std::size_t>(d));
      most.push_back(static_cast<int>(operand.dim(static_cast<unsigned>(d))) -
                     static_cast<int>(window[static_cast<std::size_t>(d)]));
    }
    for (const auto d : dims.input_batching_dims) moved.push_back(static_cast<std::size_t>(d));
    for (const auto d : moved) sizes.push_back(window[d]);
  }

  /// Whether no window fits, or none has elements.
  bool doesNothing() const {
    return std::ranges::any_of(most, [](int m) { return m < 0; }) ||
           std::ranges::find(window, 0u) != window.end();
  }

  Sizes window;                 ///< a window's shape, with the operand's rank
  std::vector<unsigned> order;  ///< of an update's dimensions: windows, then those inside
  Sizes moved;                  ///< dimensions of the operand that indices address
  Sizes sizes;                  ///< of the window along these
  std::vector<int> most;        ///< the largest index along each, except batches
};

/// [windows, indices]: the index vector last, all others as one.
Tensor rows(const Tensor& t, unsigned vector_dim, std::size_t windows) {
  std::vector<unsigned> order;
  for (unsigned d = 0; d < t.rank(); ++d)
    if (d != vector_dim) order.push_back(d);
  order.push_back(vector_dim);
  return t.dimShuffle(order).reshape({windows, t.dim(vector_dim)});
}

/// One window: read, combined, and written if it lies inside.
Sequence step(Graph& graph, const Tensors& operands, const Tensors& updates, const Tensor& starts,
              const Tensor& inside, const Plan& plan, const std::vector<pe::Expr>& body,
              const Tensor& i, const poplar::DebugContext& debug) {
  Sequence prog;
  const Tensor number = i.reshape({1}).reinterpret(poplar::UNSIGNED_INT);
  const auto row = [&](const Tensor& t) {
    return popops::dynamicSlice(graph, t, number, {0}, {1}, prog, debug).squeeze({0});
  };
  const Tensor start = row(starts);
  Tensors both;
  for (const Tensor& t : operands)
    both.push_back(popops::dynamicSlice(graph, t, start, plan.moved, plan.sizes, prog, debug));
  for (const Tensor& t : updates) both.push_back(row(t).reshape(plan.window));
  const Tensor is_inside = row(inside);
  Tensors combined;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const Tensor value = mapOne(graph, body[k], both, prog, debug);
    combined.push_back(mapOne(graph, pe::Select(pe::_1, pe::_2, pe::_3),
                              {value, both[k], is_inside}, prog, debug));
  }
  for (std::size_t k = 0; k < operands.size(); ++k)
    popops::dynamicUpdate(graph, operands[k], combined[k], start, plan.moved, plan.sizes, prog,
                          debug);
  return prog;
}

const pe::Expr& named(const std::string& name) {
  static const std::map<std::string, pe::Expr> bodies = {{"replace", pe::_2},
                                                         {"add", pe::_1 + pe::_2},
                                                         {"mul", pe::_1 * pe::_2},
                                                         {"min", pe::Min(pe::_1, pe::_2)},
                                                         {"max", pe::Max(pe::_1, pe::_2)},
                                                         {"and", pe::_1 & pe::_2},
                                                         {"or", pe::_1 | pe::_2}};
  const auto found = bodies.find(name);
  if (found == bodies.end())
    throw poplar::poplar_error("[popx::scatter] needs replace, add, mul, min, max, and, or; got " +
                               name + ". Pass expressions.");
  return found->second;
}

void check(const Tensors& operands, const Tensors& updates, std::size_t bodies) {
  if (operands.empty() || operands.size() != updates.size() || operands.size() != bodies)
    throw poplar::poplar_error(
        "[popx::scatter] needs an update and an expression for each operand; "
        "got " +
        std::to_string(operands.size()) + ", " + std::to_string(updates.size()) + " and " +
        std::to_string(bodies) + ". Pass as many of each.");
}

}  // namespace

void scatter(Graph& graph, const Tensors& operands, const Tensor& indices, const Tensors& updates,
             const ScatterDims& dims, const std::vector<pe::Expr>& body, Sequence& prog,
             const poplar::DebugContext& debugContext) {
  check(operands, updates, body.size());
  const Plan plan(operands[0], updates[0], dims);
  const auto vector_dim = static_cast<unsigned>(dims.index_vector_dim);
  const Tensor wide = starts::wide(graph, indices, vector_dim, prog, debugContext);
  std::size_t windows = 1;
  for (unsigned d = 0; d < wide.rank(); ++d) windows *= d == vector_dim ? 1 : wide.dim(d);
  if (windows == 0 || plan.doesNothing()) return;
  const Tensor near = starts::clamped(graph, wide, vector_dim, plan.most, prog, debugContext);
  const Tensor same = mapOne(graph, pe::_1 == pe::_2, {wide, near}, prog, debugContext);
  const Tensor inside = popops::reduce(graph, rows(same, vector_dim, windows), poplar::BOOL, {1},
                                       {popops::Operation::LOGICAL_AND}, prog, debugContext);
  const Tensor starts =
      rows(starts::withBatches(graph, near, vector_dim, dims.scatter_indices_batching_dims, prog,
                               debugContext),
           vector_dim, windows);
  Tensors ordered;
  for (const Tensor& t : updates) {
    const Tensor moved = t.dimShuffle(plan.order);
    ordered.push_back(moved.reshape({windows, moved.numElements() / windows}));
  }
  prog.add(popops::countedLoop(
      graph, windows,
      [&](const Tensor& i) {
        return step(graph, operands, ordered, starts, inside, plan, body, i, debugContext);
      },
      debugContext));
}

void scatter(Graph& graph, const Tensors& operands, const Tensor& indices, const Tensors& updates,
             const ScatterDims& dims, const std::string& body, Sequence& prog,
             const poplar::DebugContext& debugContext) {
  check(operands, updates, 1);
  scatter(graph, operands, indices, updates, dims, std::vector<pe::Expr>{named(body)}, prog,
          debugContext);
}

}  // namespace popx
