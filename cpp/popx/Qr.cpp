#include "popx/Qr.hpp"

#include <algorithm>

#include "engine/blas/Lapack.hpp"
#include "poplar/exceptions.hpp"

namespace popx {

namespace {

namespace engine = ipujax::engine;

/// The frame of this file's kernels: their values, and the sizes of a matrix as LAPACK counts them.
class Frame {
 public:
  explicit Frame(const engine::StepDesc& step) : values_(batch::valuesOf(step)) {}
  std::int64_t items() const { return values_[0].items(); }
  std::int64_t flops() const { return 2 * values_[0].size() * small(); }

 protected:
  std::int64_t small() const { return std::min(values_[0].rows(), values_[0].columns()); }
  int rows(std::size_t i) const { return static_cast<int>(values_[i].rows()); }
  int columns(std::size_t i) const { return static_cast<int>(values_[i].columns()); }
  template <class T, int kUse>
  T* loaded(std::span<std::byte* const> pointers, std::int64_t item, std::size_t i) const {
    T* memory = batch::memory<T, kUse>(values_[i].size());
    values_[i].load(pointers, item, memory);
    return memory;
  }

  std::vector<batch::Value> values_;
};

template <class T>
class QrItem : public Frame {
 public:
  using Frame::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    T* a = loaded<T, 0>(pointers, item, 0);
    T* tau = batch::memory<T, 1>(small());
    engine::blas::geqrf(rows(0), columns(0), a, tau);
    values_[1].store(pointers, item, a);
    values_[2].store(pointers, item, tau);
  }
};

void checkQr(engine::StepCheck& check) {
  batch::ValuesCheck values(check);
  values.first(2);
  values.out({values.rows(), values.columns()}).out({values.small()}).end();
}
const engine::RegisterKernel kFactor{"popx.qr", batch::make<QrItem>, checkQr};

template <class T>
class QrWithPivotsItem : public Frame {
 public:
  using Frame::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    T* a = loaded<T, 0>(pointers, item, 0);
    std::int32_t* order = loaded<std::int32_t, 2>(pointers, item, 1);
    T* tau = batch::memory<T, 1>(small());
    engine::blas::geqp3(rows(0), columns(0), a, order, tau);
    values_[2].store(pointers, item, a);
    values_[3].store(pointers, item, order);
    values_[4].store(pointers, item, tau);
  }
};

void checkQrWithPivots(engine::StepCheck& check) {
  using Kind = batch::ValuesCheck::Kind;
  batch::ValuesCheck values(check);
  values.first(2);
  values.in({values.columns()}, Kind::kInteger)
      .out({values.rows(), values.columns()})
      .out({values.columns()}, Kind::kInteger)
      .out({values.small()})
      .end();
}
const engine::RegisterKernel kPivots{"popx.qrWithPivots", batch::make<QrWithPivotsItem>,
                                     checkQrWithPivots};

template <class T>
class HouseholderProductItem : public Frame {
 public:
  using Frame::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    T* a = loaded<T, 0>(pointers, item, 0);
    T* tau = loaded<T, 1>(pointers, item, 1);
    engine::blas::orgqr(rows(0), columns(0), rows(1), a, tau);
    values_[2].store(pointers, item, a);
  }
};

/// The factors and their reflectors.
void checkReflectors(const engine::StepCheck& check, batch::ValuesCheck& values) {
  values.first(2);
  const auto reflectors = values.next(1);
  check.need(reflectors[0] <= values.small(), "at most one reflector for each column");
  values.in(reflectors);
}

void checkProduct(engine::StepCheck& check) {
  batch::ValuesCheck values(check);
  checkReflectors(check, values);
  check.need(values.rows() >= values.columns(), "at least as many rows as columns");
  values.out({values.rows(), values.columns()}).end();
}
const engine::RegisterKernel kProduct{"popx.householderProduct",
                                      batch::make<HouseholderProductItem>, checkProduct};

template <class T>
class HouseholderMultiplyItem : public Frame {
 public:
  explicit HouseholderMultiplyItem(const engine::StepDesc& step)
      : Frame(step),
        left_(step.attributes.integer("left") != 0),
        adjoint_(step.attributes.integer("adjoint") != 0) {}
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    T* a = loaded<T, 0>(pointers, item, 0);
    T* tau = loaded<T, 1>(pointers, item, 1);
    T* c = loaded<T, 3>(pointers, item, 2);
    engine::blas::ormqr(left_ ? 'L' : 'R', adjoint_, rows(2), columns(2), rows(1), a, rows(0), tau,
                        c);
    values_[3].store(pointers, item, c);
  }

 private:
  bool left_;
  bool adjoint_;
};

void checkMultiply(engine::StepCheck& check) {
  batch::ValuesCheck values(check);
  checkReflectors(check, values);
  const auto target = values.next(2);
  check.flag("adjoint");
  check.need(target[check.flag("left") ? 0 : 1] == values.rows(), "a matrix that Q fits");
  values.in(target).out(target).end();
}
const engine::RegisterKernel kMultiply{"popx.householderMultiply",
                                       batch::make<HouseholderMultiplyItem>, checkMultiply};

/// What the functions of this file know of their matrices [..., m, n].
struct Sizes {
  explicit Sizes(const Parts& a)
      : leading(batch::leading(a, 2)),
        items(batch::product(leading)),
        m(a[0].shape()[a[0].rank() - 2]),
        n(a[0].shape().back()),
        small(std::min(m, n)),
        complex(a.size() == 2) {}

  engine::Cost cost(const poplar::Graph& graph, double flops) const {
    return batch::cost(graph, items, m, n, static_cast<double>(small), flops, complex);
  }
  /// Of Householder QR, k = min(m, n): 4 m n k - 2 (m + n) k^2 + 4/3 k^3 (LAPACK working note 41).
  double flops() const {
    const double k = static_cast<double>(small);
    const double rows = static_cast<double>(m);
    const double columns = static_cast<double>(n);
    return 4 * rows * columns * k - 2 * (rows + columns) * k * k + 4 * k * k * k / 3;
  }

  std::vector<std::size_t> leading;
  std::uint64_t items, m, n, small;
  bool complex;
};

void checkReflectors(const std::string& where, const Parts& factors, const Parts& tau) {
  batch::check(where, factors, 2);
  batch::check(where, tau, 1);
  const Sizes sizes(factors);
  if (tau.size() != factors.size() || batch::leading(tau, 1) != sizes.leading ||
      tau[0].shape().back() > sizes.small) {
    throw poplar::poplar_error("[" + where + "] needs one tau for each reflector; got " +
                               factors[0].shapeToString() + " and " + tau[0].shapeToString() +
                               ". Pass the results of popx::qr.");
  }
}

}  // namespace

std::vector<Parts> qr(poplar::Graph& graph, const Parts& a, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext) {
  batch::check("popx::qr", a, 2);
  const Sizes sizes(a);
  return batch::emit(graph, "popx.qr", {{a, 2}},
                     {{a[0].shape(), 2, sizes.complex},
                      {batch::shapeOf(sizes.leading, {sizes.small}), 1, sizes.complex}},
                     {}, sizes.cost(graph, sizes.flops()), prog, {debugContext, "qr"});
}

std::vector<Parts> qrWithPivots(poplar::Graph& graph, const Parts& a, const poplar::Tensor& columns,
                                poplar::program::Sequence& prog,
                                const poplar::DebugContext& debugContext) {
  const std::string where = "popx::qrWithPivots";
  batch::check(where, a, 2);
  const Sizes sizes(a);
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
                     {}, sizes.cost(graph, 1.5 * sizes.flops()), prog, {debugContext, "qr"});
}

Parts householderProduct(poplar::Graph& graph, const Parts& factors, const Parts& tau,
                         poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext) {
  const std::string where = "popx::householderProduct";
  checkReflectors(where, factors, tau);
  const Sizes sizes(factors);
  if (sizes.m < sizes.n) {
    throw poplar::poplar_error("[" + where + "] needs at least as many rows as columns; got " +
                               factors[0].shapeToString() + ". Slice off the last columns.");
  }
  return batch::emit(graph, "popx.householderProduct", {{factors, 2}, {tau, 1}},
                     {{factors[0].shape(), 2, sizes.complex}}, {}, sizes.cost(graph, sizes.flops()),
                     prog, {debugContext, "householderProduct"})[0];
}

Parts householderMultiply(poplar::Graph& graph, const Parts& factors, const Parts& tau,
                          const Parts& c, bool left, bool adjoint, poplar::program::Sequence& prog,
                          const poplar::DebugContext& debugContext) {
  const std::string where = "popx::householderMultiply";
  checkReflectors(where, factors, tau);
  batch::check(where, c, 2);
  const Sizes sizes(factors);
  const Sizes target(c);
  if (target.complex != sizes.complex || target.leading != sizes.leading ||
      (left ? target.m : target.n) != sizes.m) {
    throw poplar::poplar_error("[" + where + "] needs a matrix that Q fits; got " +
                               factors[0].shapeToString() + " and " + c[0].shapeToString() +
                               ". Pass as many rows (left) or columns as Q has rows.");
  }
  engine::Attributes attributes;
  attributes.set("left", std::int64_t{left}).set("adjoint", std::int64_t{adjoint});
  const double reflectors = static_cast<double>(tau[0].shape().back());
  return batch::emit(
      graph, "popx.householderMultiply", {{factors, 2}, {tau, 1}, {c, 2}},
      {{c[0].shape(), 2, sizes.complex}}, std::move(attributes),
      batch::cost(graph, sizes.items, target.m, target.n, reflectors,
                  4 * reflectors * static_cast<double>(target.m * target.n), sizes.complex),
      prog, {debugContext, "householderMultiply"})[0];
}

}  // namespace popx
