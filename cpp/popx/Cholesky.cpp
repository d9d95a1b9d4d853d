#include "popx/Cholesky.hpp"

namespace popx {

Parts cholesky(poplar::Graph& graph, const Parts& a, bool lower, poplar::program::Sequence& prog,
               const poplar::DebugContext& debugContext) {
  batch::check("popx::cholesky", a, 2, true);
  const std::uint64_t n = a[0].shape().back();
  const std::uint64_t items = batch::product(batch::leading(a, 2));
  const double size = static_cast<double>(n);
  native::Attributes attributes;
  attributes.set("lower", std::int64_t{lower});
  return batch::emit(graph, "popx.cholesky", {{a, 2}}, {{a[0].shape(), 2, a.size() == 2}},
                     std::move(attributes),
                     batch::cost(graph, items, n, n, size, size * size * size / 3, a.size() == 2),
                     prog, {debugContext, "cholesky"})[0];
}

}  // namespace popx
