#include "popops/Scatter.hpp"

#include <algorithm>

#include "popops/DynamicSlice.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Loop.hpp"
#include "popops/internal/Scatter.hpp"
#include "poputil/Util.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

using poplar::Tensor;

template <class Dims>
bool has(const Dims& dims, std::size_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

/// [n, k]: the start of each window along each of the k scattered dimensions.
Tensor indexRows(const Tensor& indices, std::size_t indexVectorDim) {
  const Tensor whole =
      indexVectorDim == indices.rank() ? indices.expand({indices.rank()}) : indices;
  const Tensor last = whole.dimRoll(static_cast<unsigned>(indexVectorDim), whole.rank() - 1);
  const std::size_t k = last.dim(last.rank() - 1);
  return last.reshape({k == 0 ? 0 : last.numElements() / k, k});
}

/// [n, window...], with a dimension of size 1 for each inserted one.
Tensor updateRows(const Tensor& updates, const std::vector<unsigned>& windowDims,
                  const std::vector<std::size_t>& insertedDims) {
  std::vector<unsigned> order;
  for (unsigned d = 0; d < updates.rank(); ++d)
    if (!has(windowDims, d)) order.push_back(d);
  const auto num_outer = static_cast<unsigned>(order.size());
  for (const unsigned d : windowDims)
    if (d < updates.rank()) order.push_back(d);
  const Tensor moved = updates.dimShuffle(order);
  std::size_t n = 1;
  for (unsigned d = 0; d < num_outer; ++d) n *= moved.dim(d);
  std::vector<std::size_t> shape{n};
  for (unsigned d = num_outer; d < moved.rank(); ++d) shape.push_back(moved.dim(d));
  for (const std::size_t d : insertedDims) shape.insert(shape.begin() + 1 + d, 1);
  return moved.reshape(shape);
}

/// Whether a window of `sizes` at `starts` lies inside the dimensions `dims` of `operand`: BOOL.
Tensor liesInside(poplar::Graph& graph, const Tensor& operand, const Tensor& starts,
                  const std::vector<std::size_t>& dims, const std::vector<std::size_t>& sizes,
                  poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  std::vector<Tensor> ts;
  expr::Any all = expr::PlaceHolder(1) <= expr::Const(unsigned(operand.dim(dims[0]) - sizes[0]));
  for (unsigned i = 0; i < dims.size(); ++i) {
    ts.push_back(starts.flatten()[i]);
    const auto last = static_cast<unsigned>(operand.dim(dims[i]) - sizes[i]);
    if (i > 0) all = expr::Any(all && (expr::PlaceHolder(i + 1) <= expr::Const(last)));
  }
  return map(graph, all, ts, prog, debug);
}

}  // namespace

void scatter(poplar::Graph& graph, const poplar::Tensor& operand, const poplar::Tensor& indices,
             const poplar::Tensor& updates, std::size_t indexVectorDim,
             std::vector<unsigned> updateWindowDims, std::vector<std::size_t> insertWindowDims,
             std::vector<unsigned> scatterDimsToOperandDims, poplar::program::Sequence& prog,
             const poplar::DebugContext& debugContext, const poplar::OptionFlags& /*optionFlags*/) {
  internal::ScatterDims dims;
  dims.index_vector_dim = static_cast<std::int64_t>(indexVectorDim);
  dims.update_window_dims.assign(updateWindowDims.begin(), updateWindowDims.end());
  dims.inserted_window_dims.assign(insertWindowDims.begin(), insertWindowDims.end());
  dims.scatter_dims_to_operand_dims.assign(scatterDimsToOperandDims.begin(),
                                           scatterDimsToOperandDims.end());
  internal::scatter(graph, {operand}, indices, {updates}, dims, "replace", prog, debugContext);
}

void scatter(poplar::Graph& graph, const Tensor& operand, const Tensor& indices,
             const Tensor& updates, std::size_t indexVectorDim,
             std::vector<unsigned> updateWindowDims, std::vector<std::size_t> insertWindowDims,
             std::vector<unsigned> scatterDimsToOperandDims,
             UpdateComputationFunc& updateComputation, poplar::program::Sequence& prog,
             const poplar::DebugContext& debugContext, const poplar::OptionFlags& /*optionFlags*/) {
  if (updates.numElements() == 0) return;
  const Tensor starts = indexRows(indices, indexVectorDim).reinterpret(poplar::UNSIGNED_INT);
  const Tensor rows = updateRows(updates, updateWindowDims, insertWindowDims);
  const std::vector<std::size_t> dims(scatterDimsToOperandDims.begin(),
                                      scatterDimsToOperandDims.end());
  if (rows.rank() != operand.rank() + 1 || starts.dim(0) != rows.dim(0) ||
      starts.dim(1) != dims.size() || dims.empty())
    throw poputil::poplibs_error(
        "[popops::scatter] needs one index row for each update window; "
        "got indices " +
        indices.shapeToString() + ", updates " + updates.shapeToString() + " and operand " +
        operand.shapeToString() + ". Check the dimension numbers.");
  std::vector<std::size_t> sizes, begin(operand.rank()), end;
  for (const std::size_t d : dims) sizes.push_back(rows.dim(static_cast<unsigned>(d + 1)));
  for (unsigned d = 0; d < operand.rank(); ++d)
    end.push_back(has(dims, d) ? operand.dim(d) : rows.dim(d + 1));
  const Tensor part = operand.slice(begin, end);
  prog.add(countedLoop(
      graph, rows.dim(0),
      [&](const Tensor& i) {
        poplar::program::Sequence body;
        const Tensor start = dynamicSlice(graph, starts, i, {0}, {1}, body, debugContext)[0];
        Tensor update = dynamicSlice(graph, rows, i, {0}, {1}, body, debugContext)[0];
        Tensor window = dynamicSlice(graph, part, start, dims, sizes, body, debugContext);
        const Tensor inside = liesInside(graph, part, start, dims, sizes, body, debugContext);
        const Tensor old = poputil::duplicate(graph, window, body, debugContext);
        const Tensor made = updateComputation(graph, window, update, body);
        const Tensor kept = select(graph, made.reshape(old.shape()), old, inside, body);
        dynamicUpdate(graph, part, kept, start, dims, sizes, body, debugContext);
        return body;
      },
      debugContext));
}

}  // namespace popops
