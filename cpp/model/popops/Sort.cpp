#include "popops/Sort.hpp"

#include "popops/internal/Sort.hpp"

namespace popops {

using poplar::Tensor;

namespace {
const std::vector<ipujax::engine::SortKey> kAscending(1);
}

Tensor sort(poplar::Graph& graph, const Tensor& t, unsigned dim, poplar::program::Sequence& prog,
            const poplar::DebugContext& debugContext) {
  return internal::sort(graph, {t}, dim, kAscending, prog, debugContext)[0];
}

void sortInPlace(poplar::Graph& graph, const Tensor& t, unsigned dim,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  prog.add(poplar::program::Copy(sort(graph, t, dim, prog, debugContext), t, false, debugContext));
}

Tensor sortKeyValue(poplar::Graph& graph, const Tensor& k, const Tensor& v, unsigned dim,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  return internal::sort(graph, {k, v}, dim, kAscending, prog, debugContext)[1];
}

void sortKeyValueInPlace(poplar::Graph& graph, const Tensor& k, const Tensor& v, unsigned dim,
                         poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext) {
  const auto sorted = internal::sort(graph, {k, v}, dim, kAscending, prog, debugContext);
  prog.add(poplar::program::Copy(sorted[0], k, false, debugContext));
  prog.add(poplar::program::Copy(sorted[1], v, false, debugContext));
}

}  // namespace popops
