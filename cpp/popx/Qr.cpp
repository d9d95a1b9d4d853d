#include "popx/Qr.hpp"

#include "poplar/exceptions.hpp"

namespace popx {

namespace {

/// Of Householder QR, k = min(m, n): 4 m n k - 2 (m + n) k^2 + 4/3 k^3 (LAPACK working note 41).
native::Cost costOf(const Graph& graph, const batch::Matrices& a, double passes) {
  const double k = static_cast<double>(a.small);
  const double rows = static_cast<double>(a.m);
  const double columns = static_cast<double>(a.n);
  const double flops = 4 * rows * columns * k - 2 * (rows + columns) * k * k + 4 * k * k * k / 3;
  return a.cost(graph, k, passes * flops);
}

/// Checks reflectors and their factors.
batch::Matrices reflectorsOf(const std::string& where, const Parts& factors, const Parts& tau) {
  const batch::Matrices sizes(where, factors);
  batch::check(where, tau, 1);
  if (tau.size() != factors.size() || batch::leading(tau, 1) != sizes.leading ||
      tau[0].shape().back() > sizes.small) {
    throw poplar::poplar_error("[" + where + "] needs one tau for each reflector; got " +
                               factors[0].shapeToString() + " and " + tau[0].shapeToString() +
                               ". Pass the results of popx::qr.");
  }
  return sizes;
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
  if (columns.elementType() != poplar::INT ||
      columns.shape() != batch::shapeOf(sizes.leading, {sizes.n})) {
    throw poplar::poplar_error("[" + where + "] needs an INT for each column; got " +
                               columns.elementType().toString() + " " + columns.shapeToString() +
                               ". Pass zeros where any order will do.");
  }
  return batch::emit(graph, "popx.qrWithPivots", {{a, 2}, {{columns}, 1}},
                     {{a[0].shape(), 2, sizes.complex},
                      {columns.shape(), 1, false, poplar::INT},
                      {batch::shapeOf(sizes.leading, {sizes.small}), 1, sizes.complex}},
                     {}, costOf(graph, sizes, 1.5), prog, {debugContext, "qr"});
}

Parts householderProduct(Graph& graph, const Parts& factors, const Parts& tau, Sequence& prog,
                         const DebugContext& debugContext) {
  const std::string where = "popx::householderProduct";
  const auto sizes = reflectorsOf(where, factors, tau);
  if (sizes.m < sizes.n) {
    throw poplar::poplar_error("[" + where + "] needs at least as many rows as columns; got " +
                               factors[0].shapeToString() + ". Slice off the last columns.");
  }
  return batch::emit(graph, "popx.householderProduct", {{factors, 2}, {tau, 1}},
                     {{factors[0].shape(), 2, sizes.complex}}, {}, costOf(graph, sizes, 1), prog,
                     {debugContext, "householderProduct"})[0];
}

Parts householderMultiply(Graph& graph, const Parts& factors, const Parts& tau, const Parts& c,
                          bool left, bool adjoint, Sequence& prog,
                          const DebugContext& debugContext) {
  const std::string where = "popx::householderMultiply";
  const auto sizes = reflectorsOf(where, factors, tau);
  const batch::Matrices target(where, c);
  if (target.complex != sizes.complex || target.leading != sizes.leading ||
      (left ? target.m : target.n) != sizes.m) {
    throw poplar::poplar_error("[" + where + "] needs a matrix that Q fits; got " +
                               factors[0].shapeToString() + " and " + c[0].shapeToString() +
                               ". Pass as many rows (left) or columns as Q has rows.");
  }
  native::Attributes attributes;
  attributes.set("left", std::int64_t{left}).set("adjoint", std::int64_t{adjoint});
  const double reflectors = static_cast<double>(tau[0].shape().back());
  return batch::emit(
      graph, "popx.householderMultiply", {{factors, 2}, {tau, 1}, {c, 2}},
      {{c[0].shape(), 2, sizes.complex}}, std::move(attributes),
      target.cost(graph, reflectors, 4 * reflectors * static_cast<double>(target.m * target.n)),
      prog, {debugContext, "householderMultiply"})[0];
}

}  // namespace popx
