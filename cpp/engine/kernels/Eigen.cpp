#include <algorithm>

#include "engine/Errors.hpp"
#include "engine/Workspace.hpp"
#include "engine/blas/Lapack.hpp"
#include "engine/kernels/MatrixBatch.hpp"

namespace ipujax::engine {

namespace {
using batch::Complex;

/// The frame of this file's kernels: square matrices in, status last.
template <class T>
class Frame {
 public:
  explicit Frame(const StepDesc& step)
      : values_(batch::valuesOf(step)),
        flags_(step.attributes.integers("flags")),
        n_(values_[0].rows()) {}
  std::int64_t items() const { return values_[0].items(); }
  std::int64_t flops() const { return 8 * n_ * n_ * n_; }

 protected:
  int n() const { return static_cast<int>(n_); }
  T* loaded(Workspace& workspace, std::span<std::byte* const> pointers, std::int64_t item) const {
    T* a = workspace.get<T>(n_ * n_);
    values_[0].load(pointers, item, a);
    return a;
  }
  void storeStatus(std::span<std::byte* const> pointers, std::int64_t item,
                   std::int32_t status) const {
    values_.back().store(pointers, item, &status);
  }

  std::vector<batch::Value> values_;
  Attributes::Integers flags_;
  std::int64_t n_;
};

template <class T>
class EighItem : public Frame<T> {
 public:
  using Frame<T>::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    Workspace workspace;
    T* a = this->loaded(workspace, pointers, item);
    float* w = workspace.get<float>(this->n_);
    const int status = blas::heevd(this->flags_[0] ? 'L' : 'U', this->n(), a, w);
    this->values_[1].store(pointers, item, a);
    this->values_[2].store(pointers, item, w);
    this->storeStatus(pointers, item, status);
  }
};

using Kind = batch::ValuesCheck::Kind;

/// A square matrix first.
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
const RegisterKernel kHermitian{"popx.eigh", batch::make<EighItem>, checkEigh};

template <class T>
class TridiagonalItem : public Frame<T> {
 public:
  using Frame<T>::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    Workspace workspace;
    T* a = this->loaded(workspace, pointers, item);
    float* d = workspace.get<float>(2 * this->n_);
    float* e = d + this->n_;
    T* tau = workspace.get<T>(this->n_);
    const int status = blas::hetrd(this->flags_[0] ? 'L' : 'U', this->n(), a, d, e, tau);
    this->values_[1].store(pointers, item, a);
    this->values_[2].store(pointers, item, d);
    this->values_[3].store(pointers, item, e);
    this->values_[4].store(pointers, item, tau);
    this->storeStatus(pointers, item, status);
  }
};

void checkTridiagonal(StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n, n}).out({n}, Kind::kReal).out({lessOne(n)}, Kind::kReal).out({lessOne(n)});
  values.status().end(1);
}
const RegisterKernel kTridiagonal{"popx.tridiagonal", batch::make<TridiagonalItem>,
                                  checkTridiagonal};

template <class T>
class EigItem : public Frame<T> {
 public:
  using Frame<T>::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    const std::int64_t square = this->n_ * this->n_;
    Workspace workspace;
    T* a = this->loaded(workspace, pointers, item);
    Complex* w = workspace.get<Complex>(this->n_);
    Complex* left = workspace.get<Complex>(2 * square);
    Complex* right = left + square;
    std::fill(left, left + 2 * square, Complex(0));
    const int status = blas::geev(this->n(), a, w, this->flags_[0] ? left : nullptr,
                                  this->flags_[1] ? right : nullptr);
    this->values_[1].store(pointers, item, w);
    this->values_[2].store(pointers, item, left);
    this->values_[3].store(pointers, item, right);
    this->storeStatus(pointers, item, status);
  }
};

void checkEig(StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n}, Kind::kComplex).out({n, n}, Kind::kComplex).out({n, n}, Kind::kComplex);
  values.status().end(2);
}
const RegisterKernel kGeneral{"popx.eig", batch::make<EigItem>, checkEig};

template <class T>
class SchurItem : public Frame<T> {
 public:
  using Frame<T>::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    const std::int64_t square = this->n_ * this->n_;
    Workspace workspace;
    T* a = this->loaded(workspace, pointers, item);
    T* vectors = workspace.get<T>(square);
    std::fill(vectors, vectors + square, T(0));
    Complex* w = workspace.get<Complex>(this->n_);
    const int status = blas::gees(this->n(), a, this->flags_[0] ? vectors : nullptr, w);
    this->values_[1].store(pointers, item, a);
    this->values_[2].store(pointers, item, vectors);
    this->values_[3].store(pointers, item, w);
    this->storeStatus(pointers, item, status);
  }
};

void checkSchur(StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n, n}).out({n, n}).out({n}, Kind::kComplex).status().end(1);
}
const RegisterKernel kSchur{"popx.schur", batch::make<SchurItem>, checkSchur};

template <class T>
class HessenbergItem : public Frame<T> {
 public:
  using Frame<T>::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    Workspace workspace;
    T* a = this->loaded(workspace, pointers, item);
    T* tau = workspace.get<T>(this->n_);
    const int status = blas::gehrd(this->n(), a, tau);
    this->values_[1].store(pointers, item, a);
    this->values_[2].store(pointers, item, tau);
    this->storeStatus(pointers, item, status);
  }
};

void checkHessenberg(StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n, n}).out({lessOne(n)}).status().end(0);
}
const RegisterKernel kHessenberg{"popx.hessenberg", batch::make<HessenbergItem>, checkHessenberg};

}  // namespace
}  // namespace ipujax::engine
