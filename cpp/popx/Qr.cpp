#include "popx/Qr.hpp"

#include "popx/MatrixBatch.hpp"

namespace popx {

namespace {

/// Householder QR, k = min(m, n): 4 m n k - 2 (m + n) k^2 + 4/3 k^3 flops (LAPACK working note 41).
native::Cost costOf(const Graph& graph, const batch::Matrices& a, double passes) {
  const double k = static_cast<double>(a.small);
  const double rows = static_cast<double>(a.m);
  const double columns = static_cast<double>(a.n);
  const double flops = 4 * rows * columns * k - 2 * (rows + columns) * k * k + 4 * k * k * k / 3;
  return batch::cost(graph, a, k, passes * flops);
}

}  // namespace

std::vector<Parts> qr(Graph& graph, const Parts& a, Sequence& prog,
                      const DebugContext& debugContext) {
  const batch::Matrices sizes("popx::qr", a);
  return batch::emit(graph, "popx.qr", {{a, 2}},
                     {{a[0].shape(), 2, sizes.complex},
                      {batch::shapeOf(sizes.leading, {sizes.small}), 1, sizes.complex}},
                     {}, costOf(graph, sizes, 1), prog, {debugContext, "qr"});
}

std::vector<Parts> qrWithPivots(Graph& graph, const Parts& a, const poplar::Tensor& columns,
                                Sequence& prog, const DebugContext& debugContext) {
  const std::string where = "popx::qrWithPivots";
  const batch::Matrices sizes(where, a);
  batch::checkColumns(where, sizes, columns);
  return batch::emit(graph, "popx.qrWithPivots", {{a, 2}, {{columns}, 1}},
                     {{a[0].shape(), 2, sizes.complex},
                      {columns.shape(), 1, false, poplar::INT},
                      {batch::shapeOf(sizes.leading, {sizes.small}), 1, sizes.complex}},
                     {}, costOf(graph, sizes, 1.5), prog, {debugContext, "qr"});
}

Parts householderProduct(Graph& graph, const Parts& factors, const Parts& tau, Sequence& prog,
                         const DebugContext& debugContext) {
  const std::string where = "popx::householderProduct";
  const auto sizes = batch::productOf(where, factors, tau);
  return batch::emit(graph, "popx.householderProduct", {{factors, 2}, {tau, 1}},
                     {{factors[0].shape(), 2, sizes.complex}}, {}, costOf(graph, sizes, 1), prog,
                     {debugContext, "householderProduct"})[0];
}

Parts householderMultiply(Graph& graph, const Parts& factors, const Parts& tau, const Parts& c,
                          bool left, bool adjoint, Sequence& prog,
                          const DebugContext& debugContext) {
  const std::string where = "popx::householderMultiply";
  const auto target = batch::multiplied(where, factors, tau, c, left);
  native::Attributes attributes;
  attributes.set("left", std::int64_t{left}).set("adjoint", std::int64_t{adjoint});
  const double reflectors = static_cast<double>(tau[0].shape().back());
  return batch::emit(graph, "popx.householderMultiply", {{factors, 2}, {tau, 1}, {c, 2}},
                     {{c[0].shape(), 2, target.complex}}, std::move(attributes),
                     batch::cost(graph, target, reflectors,
                                 4 * reflectors * static_cast<double>(target.m * target.n)),
                     prog, {debugContext, "householderMultiply"})[0];
}

}  // namespace popx
