#include "popx/Cholesky.hpp"

#include "popx/hardware/ItemStep.hpp"

namespace popx {

Parts cholesky(Graph& graph, const Parts& a, bool lower, Sequence& prog,
               const DebugContext& debugContext,
               std::size_t) {  // one vertex per matrix, so no blocks
  const batch::Matrices given("popx::cholesky", a, true);
  const double size = static_cast<double>(given.n);
  ItemStep step(graph, "popx::cholesky", given.items, prog, {debugContext, "cholesky"});
  const auto factor = step.copy(a, 2);
  step.run("Triangular", instanceFor("Cholesky", given.complex), {{"a", factor}},
           {{"n", given.n}, {"lower", lower}}, size * size * size / 3);
  return partsOf(factor, a[0].shape(), given.complex);
}

}  // namespace popx
