#include "popx/Reduce.hpp"

#include <algorithm>

#include "poplar/exceptions.hpp"
#include "popx/hardware/Fold.hpp"

namespace popx {
namespace {

using poplar::Tensor;
using Tensors = std::vector<Tensor>;

/// [kept..., reduced]: the reduced dimensions last, as one.
Tensor arranged(const Tensor& t, std::vector<std::size_t> dims) {
  std::ranges::sort(dims);
  std::vector<unsigned> order;
  std::vector<std::size_t> shape;
  std::size_t reduced = 1;
  for (unsigned d = 0; d < t.rank(); ++d) {
    if (std::ranges::binary_search(dims, d)) continue;
    order.push_back(d);
    shape.push_back(t.dim(d));
  }
  for (const auto d : dims) {
    order.push_back(static_cast<unsigned>(d));
    reduced *= t.dim(static_cast<unsigned>(d));
  }
  shape.push_back(reduced);
  return t.dimShuffle(order).reshape(shape);
}

void checkDims(std::size_t rank, const std::vector<std::size_t>& dims) {
  for (const auto d : dims) {
    if (d >= rank || std::ranges::count(dims, d) > 1)
      throw poplar::poplar_error("[popx::reduce] needs dimensions below " + std::to_string(rank) +
                                 ", each once; got " + std::to_string(d) +
                                 ". Check the dimensions.");
  }
}

/// A tensor of `shape` without its last dimension; each element is `value`.
Tensor filled(poplar::Graph& graph, const Tensor& value, std::vector<std::size_t> shape,
              poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  shape.pop_back();
  const Tensor t =
      graph.addVariable(value.elementType(), shape, poplar::VariableMappingMethod::LINEAR, debug);
  const auto count = static_cast<unsigned>(t.numElements());
  prog.add(
      poplar::program::Copy(value.reshape({1}).broadcast(count, 0), t.flatten(), false, debug));
  return t;
}

}  // namespace

/// A tree: combines neighbours until one is left, which keeps their order.
Tensors reduce(poplar::Graph& graph, const Tensors& ins, const Tensors& inits,
               const std::vector<expr::Expr>& body, const std::vector<std::size_t>& dims,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  fold::check("popx::reduce", ins, inits, body);
  checkDims(ins[0].rank(), dims);
  Tensors values, first;
  for (const Tensor& in : ins) values.push_back(arranged(in, dims));
  const unsigned last = values[0].rank() - 1;
  for (const Tensor& init : inits) first.push_back(init.reshape({}));
  while (values[0].dim(last) > 1) {
    const std::size_t pairs = values[0].dim(last) / 2;
    Tensors earlier, later;
    for (const Tensor& t : values) {
      const Tensor paired = t.slice(0, 2 * pairs, last);
      earlier.push_back(paired.subSample(2, last));
      later.push_back(paired.slice(1, 2 * pairs, last).subSample(2, last));
    }
    auto combined = fold::combine(graph, earlier, later, body, prog, debugContext);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] =
          poplar::concat(combined[i], values[i].slice(2 * pairs, values[i].dim(last), last), last);
  }
  if (values[0].dim(last) == 0) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = filled(graph, first[i], values[i].shape(), prog, debugContext);
    return values;
  }
  for (Tensor& t : values) t = t.squeeze({last});
  return fold::combine(graph, first, values, body, prog, debugContext);
}

}  // namespace popx
