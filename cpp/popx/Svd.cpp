#include "popx/Svd.hpp"

#include <algorithm>

namespace popx {

std::vector<Parts> svd(poplar::Graph& graph, const Parts& a, bool vectors, bool full, bool divide,
                       poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  batch::check("popx::svd", a, 2);
  const auto leading = batch::leading(a, 2);
  const std::uint64_t m = a[0].shape()[a[0].rank() - 2];
  const std::uint64_t n = a[0].shape().back();
  const std::uint64_t k = std::min(m, n);
  const bool complex = a.size() == 2;
  native::Attributes attributes;
  attributes.set("job", std::int64_t{!vectors ? 'N' : full ? 'A' : 'S'});
  attributes.set("divide", std::int64_t{divide});
  const double elements = static_cast<double>(m * n);
  const double small = static_cast<double>(k);
  // Golub and Van Loan: 4 m n^2 - 4/3 n^3 for the values, about five times that with vectors.
  const double flops = (vectors ? 5 : 1) * (4 * elements * small - small * small * small * 4 / 3);
  return batch::emit(graph, "popx.svd", {{a, 2}},
                     {{batch::shapeOf(leading, {k}), 1},
                      {batch::shapeOf(leading, {m, full ? m : k}), 2, complex},
                      {batch::shapeOf(leading, {full ? n : k, n}), 2, complex},
                      {leading, 0, false, poplar::INT}},
                     std::move(attributes),
                     batch::cost(graph, batch::product(leading), m, n, 3 * small, flops, complex),
                     prog, {debugContext, "svd"});
}

}  // namespace popx
