#include <algorithm>

#include "engine/blas/Lapack.hpp"
#include "engine/kernels/linalg/MatrixBatch.hpp"

namespace ipujax::engine {

namespace {
using batch::Item;

int small(const Item& item) { return std::min(item.rows(0), item.columns(0)); }

/// A kernel that costs about as much as a factorisation of the first value.
template <class F>
std::unique_ptr<Kernel> make(const StepDesc& step, F body) {
  const auto values = batch::valuesOf(step);
  const std::int64_t small = std::min(values[0].rows(), values[0].columns());
  return batch::make(step, values, 2 * values[0].size() * small, std::move(body));
}

std::unique_ptr<Kernel> makeQr(const StepDesc& step) {
  return make(step, []<class T>(Item& item, T) {
    T* a = item.load<T>(0);
    T* tau = item.room<T>(small(item));
    blas::geqrf(item.rows(0), item.columns(0), a, tau);
    item.store(1, a, tau);
  });
}

void checkQr(StepCheck& check) {
  batch::ValuesCheck values(check);
  values.first(2);
  values.out({values.rows(), values.columns()}).out({values.small()}).end();
}
const RegisterKernel kFactor{"popx.qr", makeQr, checkQr};

std::unique_ptr<Kernel> makeQrWithPivots(const StepDesc& step) {
  return make(step, []<class T>(Item& item, T) {
    T* a = item.load<T>(0);
    auto* order = item.load<std::int32_t>(1);
    T* tau = item.room<T>(small(item));
    blas::geqp3(item.rows(0), item.columns(0), a, order, tau);
    item.store(2, a, order, tau);
  });
}

void checkQrWithPivots(StepCheck& check) {
  using Kind = batch::ValuesCheck::Kind;
  batch::ValuesCheck values(check);
  values.first(2);
  values.in({values.columns()}, Kind::kInteger)
      .out({values.rows(), values.columns()})
      .out({values.columns()}, Kind::kInteger)
      .out({values.small()})
      .end();
}
const RegisterKernel kPivots{"popx.qrWithPivots", makeQrWithPivots, checkQrWithPivots};

std::unique_ptr<Kernel> makeHouseholderProduct(const StepDesc& step) {
  return make(step, []<class T>(Item& item, T) {
    T* a = item.load<T>(0);
    T* tau = item.load<T>(1);
    blas::orgqr(item.rows(0), item.columns(0), item.rows(1), a, tau);
    item.store(2, a);
  });
}

/// Checks the factors and their reflectors.
void checkReflectors(const StepCheck& check, batch::ValuesCheck& values) {
  values.first(2);
  const auto reflectors = values.next(1);
  check.need(reflectors[0] <= values.small(), "at most one reflector for each column");
  values.in(reflectors);
}

void checkProduct(StepCheck& check) {
  batch::ValuesCheck values(check);
  checkReflectors(check, values);
  check.need(values.rows() >= values.columns(), "at least as many rows as columns");
  values.out({values.rows(), values.columns()}).end();
}
const RegisterKernel kProduct{"popx.householderProduct", makeHouseholderProduct, checkProduct};

std::unique_ptr<Kernel> makeHouseholderMultiply(const StepDesc& step) {
  const char side = step.attributes.integer("left") != 0 ? 'L' : 'R';
  const bool adjoint = step.attributes.integer("adjoint") != 0;
  return make(step, [=]<class T>(Item& item, T) {
    T* a = item.load<T>(0);
    T* tau = item.load<T>(1);
    T* c = item.load<T>(2);
    blas::ormqr(side, adjoint, item.rows(2), item.columns(2), item.rows(1), a, item.rows(0), tau,
                c);
    item.store(3, c);
  });
}

void checkMultiply(StepCheck& check) {
  batch::ValuesCheck values(check);
  checkReflectors(check, values);
  const auto target = values.next(2);
  check.flag("adjoint");
  check.need(target[check.flag("left") ? 0 : 1] == values.rows(), "a matrix that Q fits");
  values.in(target).out(target).end();
}
const RegisterKernel kMultiply{"popx.householderMultiply", makeHouseholderMultiply, checkMultiply};

}  // namespace
}  // namespace ipujax::engine
