#include "popx/Svd.hpp"

#include <tuple>

#include "popx/MatrixBatch.hpp"

namespace popx {

std::vector<Parts> svd(Graph& graph, const Parts& a, bool vectors, bool full, bool divide,
                       Sequence& prog, const DebugContext& debugContext) {
  const batch::Matrices given("popx::svd", a);
  const auto [m, n, k] = std::tuple(given.m, given.n, given.small);
  native::Attributes attributes;
  attributes.set("job", std::int64_t{!vectors ? 'N' : full ? 'A' : 'S'});
  attributes.set("divide", std::int64_t{divide});
  const double elements = static_cast<double>(m * n);
  const double small = static_cast<double>(k);
  // Golub and Van Loan: 4 m n^2 - 4/3 n^3 for the values, about five times that with vectors.
  const double flops = (vectors ? 5 : 1) * (4 * elements * small - small * small * small * 4 / 3);
  return batch::emit(graph, "popx.svd", {{a, 2}},
                     {{batch::shapeOf(given.leading, {k}), 1},
                      {batch::shapeOf(given.leading, {m, full ? m : k}), 2, given.complex},
                      {batch::shapeOf(given.leading, {full ? n : k, n}), 2, given.complex},
                      batch::status(given)},
                     std::move(attributes), batch::cost(graph, given, 3 * small, flops), prog,
                     {debugContext, "svd"});
}

}  // namespace popx
