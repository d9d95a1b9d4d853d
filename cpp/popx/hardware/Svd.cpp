#include "popx/Svd.hpp"

#include <algorithm>

#include "popx/hardware/ItemStep.hpp"

namespace popx {

/// One algorithm serves both values of `divide`.
std::vector<Parts> svd(Graph& graph, const Parts& a, bool vectors, bool full, bool /*divide*/,
                       Sequence& prog, const DebugContext& debugContext) {
  const batch::Matrices given("popx::svd", a);
  const std::size_t m = given.m, n = given.n, k = given.small, most = std::max(m, n);
  const std::size_t floats = given.complex ? 2 : 1;
  const std::size_t u_columns = full ? m : k, v_rows = full ? n : k;
  ItemStep step(graph, "popx::svd", given.items, prog, {debugContext, "svd"});
  const auto in = step.copy(a, 2);
  const auto u = step.zeros(poplar::FLOAT, m * u_columns * floats);
  const auto vh = step.zeros(poplar::FLOAT, v_rows * n * floats);
  const auto values = step.room(poplar::FLOAT, k);
  const auto status = step.status();
  const double sweep = 10.0 * static_cast<double>(most * k * k);  // our estimate: six sweeps
  step.run("Svd", instanceFor("Svd", given.complex),
           {{"a", in},
            {"tall", step.room(poplar::FLOAT, most * (full ? most : k) * floats)},
            {"small", step.room(poplar::FLOAT, k * k * floats)},
            {"u", u},
            {"vh", vh},
            {"values", values},
            {"status", status}},
           {{"m", m}, {"n", n}, {"vectors", vectors}, {"full", full}}, 6 * sweep);
  return {partsOf(values, batch::shapeOf(given.leading, {k}), false),
          partsOf(u, batch::shapeOf(given.leading, {m, u_columns}), given.complex),
          partsOf(vh, batch::shapeOf(given.leading, {v_rows, n}), given.complex),
          partsOf(status, given.leading, false)};
}

}  // namespace popx
