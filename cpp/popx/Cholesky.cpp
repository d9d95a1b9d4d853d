#include "popx/Cholesky.hpp"

#include "popx/MatrixBatch.hpp"

namespace popx {

Parts cholesky(Graph& graph, const Parts& a, bool lower, Sequence& prog,
               const DebugContext& debugContext, std::size_t block_size) {
  const batch::Matrices given("popx::cholesky", a, true);
  const double size = static_cast<double>(given.n);
  native::Attributes attributes;
  attributes.set("lower", std::int64_t{lower});
  return batch::emit(
      graph, "popx.cholesky", {{a, 2}}, {{a[0].shape(), 2, given.complex}}, std::move(attributes),
      batch::blockedCost(graph, given, {size, block_size, false}, size * size * size / 3), prog,
      {debugContext, "cholesky"})[0];
}

}  // namespace popx
