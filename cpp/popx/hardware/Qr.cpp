#include "popx/Qr.hpp"

#include "popx/hardware/ItemStep.hpp"

namespace popx {

namespace {

/// Householder QR, k = min(m, n): 4 m n k - 2 (m + n) k^2 + 4/3 k^3 flops (LAPACK working note 41).
double flopsOf(const batch::Matrices& a) {
  const double k = static_cast<double>(a.small);
  const double m = static_cast<double>(a.m);
  const double n = static_cast<double>(a.n);
  return 4 * m * n * k - 2 * (m + n) * k * k + 4 * k * k * k / 3;
}

Parts tausOf(const poplar::Tensor& tau, const batch::Matrices& a) {
  return partsOf(tau, batch::shapeOf(a.leading, {a.small}), a.complex);
}

std::size_t floatsOf(const batch::Matrices& a) { return a.complex ? 2 : 1; }

}  // namespace

std::vector<Parts> qr(Graph& graph, const Parts& a, Sequence& prog,
                      const DebugContext& debugContext) {
  const batch::Matrices sizes("popx::qr", a);
  ItemStep step(graph, "popx::qr", sizes.items, prog, {debugContext, "qr"});
  const auto factors = step.copy(a, 2);
  const auto tau = step.room(poplar::FLOAT, sizes.small * floatsOf(sizes));
  step.run("Qr", instanceFor("Qr", sizes.complex), {{"a", factors}, {"tau", tau}},
           {{"m", sizes.m}, {"n", sizes.n}}, flopsOf(sizes));
  return {partsOf(factors, a[0].shape(), sizes.complex), tausOf(tau, sizes)};
}

std::vector<Parts> qrWithPivots(Graph& graph, const Parts& a, const poplar::Tensor& columns,
                                Sequence& prog, const DebugContext& debugContext) {
  const std::string where = "popx::qrWithPivots";
  const batch::Matrices sizes(where, a);
  batch::checkColumns(where, sizes, columns);
  ItemStep step(graph, where, sizes.items, prog, {debugContext, "qr"});
  const auto factors = step.copy(a, 2);
  const auto order = step.copy({columns}, 1);
  const auto tau = step.room(poplar::FLOAT, sizes.small * floatsOf(sizes));
  step.run("Qr", instanceFor("QrWithPivots", sizes.complex),
           {{"a", factors}, {"order", order}, {"tau", tau}}, {{"m", sizes.m}, {"n", sizes.n}},
           1.5 * flopsOf(sizes));
  return {partsOf(factors, a[0].shape(), sizes.complex),
          {order.reshape(columns.shape())},
          tausOf(tau, sizes)};
}

Parts householderProduct(Graph& graph, const Parts& factors, const Parts& tau, Sequence& prog,
                         const DebugContext& debugContext) {
  const std::string where = "popx::householderProduct";
  const auto sizes = batch::productOf(where, factors, tau);
  ItemStep step(graph, where, sizes.items, prog, {debugContext, "householderProduct"});
  const auto product = step.copy(factors, 2);
  step.run("Qr", instanceFor("HouseholderProduct", sizes.complex),
           {{"a", product}, {"tau", step.copy(tau, 1)}},
           {{"m", sizes.m}, {"n", sizes.n}, {"count", tau[0].shape().back()}}, flopsOf(sizes));
  return partsOf(product, factors[0].shape(), sizes.complex);
}

Parts householderMultiply(Graph& graph, const Parts& factors, const Parts& tau, const Parts& c,
                          bool left, bool adjoint, Sequence& prog,
                          const DebugContext& debugContext) {
  const std::string where = "popx::householderMultiply";
  const auto target = batch::multiplied(where, factors, tau, c, left);
  const std::size_t count = tau[0].shape().back();
  ItemStep step(graph, where, target.items, prog, {debugContext, "householderMultiply"});
  const auto product = step.copy(c, 2);
  step.run("Qr", instanceFor("HouseholderMultiply", target.complex),
           {{"c", product}, {"a", step.copy(factors, 2)}, {"tau", step.copy(tau, 1)}},
           {{"m", left ? target.m : target.n},
            {"n", factors[0].shape().back()},
            {"count", count},
            {"rows", target.m},
            {"columns", target.n},
            {"left", left},
            {"adjoint", adjoint}},
           static_cast<double>(4 * count * target.m * target.n));
  return partsOf(product, c[0].shape(), target.complex);
}

}  // namespace popx
