#include <algorithm>

#include "engine/blas/Lapack.hpp"
#include "engine/kernels/linalg/MatrixBatch.hpp"

namespace ipujax::engine {

namespace {
using batch::Item;

/// A kernel of square matrices.
template <class F>
std::unique_ptr<Kernel> make(const StepDesc& step, F body) {
  const auto values = batch::valuesOf(step);
  const std::int64_t n = values[0].rows();
  return batch::make(step, values, 8 * n * n * n, std::move(body));
}

std::unique_ptr<Kernel> makeEigh(const StepDesc& step) {
  return make(step, [flags = step.attributes.integers("flags")]<class T>(Item& item, T) {
    const int n = item.rows(0);
    T* a = item.load<T>(0);
    auto* w = item.room<blas::Real<T>>(n);
    const int status = blas::heevd(flags[0] ? 'L' : 'U', n, a, w);
    item.store(1, a, w, &status);
  });
}

using Kind = batch::ValuesCheck::Kind;

/// Checks that the first operand is a square matrix.
batch::ValuesCheck squareOf(StepCheck& check) {
  batch::ValuesCheck values(check);
  values.first(2, true);
  return values;
}
std::int64_t lessOne(std::int64_t n) { return n == 0 ? 0 : n - 1; }

void checkEigh(StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n, n}).out({n}, Kind::kReal).status().end(1);
}
const RegisterKernel kHermitian{"popx.eigh", makeEigh, checkEigh};

std::unique_ptr<Kernel> makeTridiagonal(const StepDesc& step) {
  return make(step, [flags = step.attributes.integers("flags")]<class T>(Item& item, T) {
    const int n = item.rows(0);
    T* a = item.load<T>(0);
    auto* d = item.room<blas::Real<T>>(n);
    auto* e = item.room<blas::Real<T>>(n);
    T* tau = item.room<T>(n);
    const int status = blas::hetrd(flags[0] ? 'L' : 'U', n, a, d, e, tau);
    item.store(1, a, d, e, tau, &status);
  });
}

void checkTridiagonal(StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n, n}).out({n}, Kind::kReal).out({lessOne(n)}, Kind::kReal).out({lessOne(n)});
  values.status().end(1);
}
const RegisterKernel kTridiagonal{"popx.tridiagonal", makeTridiagonal, checkTridiagonal};

std::unique_ptr<Kernel> makeEig(const StepDesc& step) {
  return make(step, [flags = step.attributes.integers("flags")]<class T>(Item& item, T) {
    T* a = item.load<T>(0);
    auto* w = item.room<blas::Complex<T>>(item.rows(0));
    auto* left = item.zeros<blas::Complex<T>>(item.size(0));
    auto* right = item.zeros<blas::Complex<T>>(item.size(0));
    const int status =
        blas::geev(item.rows(0), a, w, flags[0] ? left : nullptr, flags[1] ? right : nullptr);
    item.store(1, w, left, right, &status);
  });
}

void checkEig(StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n}, Kind::kComplex).out({n, n}, Kind::kComplex).out({n, n}, Kind::kComplex);
  values.status().end(2);
}
const RegisterKernel kGeneral{"popx.eig", makeEig, checkEig};

std::unique_ptr<Kernel> makeSchur(const StepDesc& step) {
  return make(step, [flags = step.attributes.integers("flags")]<class T>(Item& item, T) {
    T* a = item.load<T>(0);
    T* vectors = item.zeros<T>(item.size(0));
    auto* w = item.room<blas::Complex<T>>(item.rows(0));
    const int status = blas::gees(item.rows(0), a, flags[0] ? vectors : nullptr, w);
    item.store(1, a, vectors, w, &status);
  });
}

void checkSchur(StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n, n}).out({n, n}).out({n}, Kind::kComplex).status().end(1);
}
const RegisterKernel kSchur{"popx.schur", makeSchur, checkSchur};

std::unique_ptr<Kernel> makeHessenberg(const StepDesc& step) {
  return make(step, []<class T>(Item& item, T) {
    T* a = item.load<T>(0);
    T* tau = item.room<T>(item.rows(0));
    const int status = blas::gehrd(item.rows(0), a, tau);
    item.store(1, a, tau, &status);
  });
}

void checkHessenberg(StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n, n}).out({lessOne(n)}).status().end(0);
}
const RegisterKernel kHessenberg{"popx.hessenberg", makeHessenberg, checkHessenberg};

}  // namespace
}  // namespace ipujax::engine
