#include "Check.hpp"
#include "engine/image/Image.hpp"
#include "popops/OnDevice.hpp"
#include "popx/Cholesky.hpp"
#include "popx/Eigen.hpp"
#include "popx/Lu.hpp"
#include "popx/Qr.hpp"
#include "popx/Svd.hpp"
#include "popx/TriangularSolve.hpp"
#include "popx/Type.hpp"

using popx::Parts;

namespace {

template <class F>
double cyclesOf(std::size_t items, std::size_t n, const F& function,
                const poplar::Type& type = poplar::FLOAT) {
  OnDevice d;
  const Parts a = {
      d.graph.addVariable(type, {items, n, n}, poplar::VariableMappingMethod::LINEAR, "a")};
  function(d.graph, a, d.prog);
  return poplar::compileGraph(d.graph, {d.prog}).image()->cost().cycles();
}

}  // namespace

TEST(costs_grow_with_size_and_batch) {
  using Function = void (*)(poplar::Graph&, const Parts&, poplar::program::Sequence&);
  const Function functions[] = {
      [](auto& g, const auto& a, auto& p) { popx::cholesky(g, a, true, p); },
      [](auto& g, const auto& a, auto& p) { popx::triangularSolve(g, a, a, {}, p); },
      [](auto& g, const auto& a, auto& p) { popx::lu(g, a, p); },
      [](auto& g, const auto& a, auto& p) { popx::qr(g, a, p); },
      [](auto& g, const auto& a, auto& p) { popx::eigh(g, a, true, p); },
      [](auto& g, const auto& a, auto& p) { popx::eig(g, a, true, true, p); },
      [](auto& g, const auto& a, auto& p) { popx::svd(g, a, true, true, true, p); }};
  for (const auto function : functions) {
    const double once = cyclesOf(1, 64, function);
    CHECK(once > 0);
    CHECK(cyclesOf(1, 128, function) > 1.5 * once);
    CHECK(cyclesOf(2944, 32, function) > 1.5 * cyclesOf(1472, 32, function));
    CHECK(cyclesOf(1, 64, function, popx::DOUBLE) > 2 * once);  // software arithmetic
  }
}
