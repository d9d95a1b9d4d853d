#include <algorithm>

#include "engine/Errors.hpp"
#include "engine/Workspace.hpp"
#include "engine/blas/Lapack.hpp"
#include "engine/kernels/MatrixBatch.hpp"

namespace ipujax::engine {

namespace {

/// The frame of this file's kernels: their values, and the sizes of a matrix as LAPACK counts them.
class Frame {
 public:
  explicit Frame(const StepDesc& step) : values_(batch::valuesOf(step)) {}
  std::int64_t items() const { return values_[0].items(); }
  std::int64_t flops() const { return 2 * values_[0].size() * small(); }

 protected:
  std::int64_t small() const { return std::min(values_[0].rows(), values_[0].columns()); }
  int rows(std::size_t i) const { return static_cast<int>(values_[i].rows()); }
  int columns(std::size_t i) const { return static_cast<int>(values_[i].columns()); }
  template <class T>
  T* loaded(Workspace& workspace, std::span<std::byte* const> pointers, std::int64_t item,
            std::size_t i) const {
    T* memory = workspace.get<T>(values_[i].size());
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
    Workspace workspace;
    T* a = loaded<T>(workspace, pointers, item, 0);
    T* tau = workspace.get<T>(small());
    blas::geqrf(rows(0), columns(0), a, tau);
    values_[1].store(pointers, item, a);
    values_[2].store(pointers, item, tau);
  }
};

void checkQr(StepCheck& check) {
  batch::ValuesCheck values(check);
  values.first(2);
  values.out({values.rows(), values.columns()}).out({values.small()}).end();
}
const RegisterKernel kFactor{"popx.qr", batch::make<QrItem>, checkQr};

template <class T>
class QrWithPivotsItem : public Frame {
 public:
  using Frame::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    Workspace workspace;
    T* a = loaded<T>(workspace, pointers, item, 0);
    std::int32_t* order = loaded<std::int32_t>(workspace, pointers, item, 1);
    T* tau = workspace.get<T>(small());
    blas::geqp3(rows(0), columns(0), a, order, tau);
    values_[2].store(pointers, item, a);
    values_[3].store(pointers, item, order);
    values_[4].store(pointers, item, tau);
  }
};

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
const RegisterKernel kPivots{"popx.qrWithPivots", batch::make<QrWithPivotsItem>, checkQrWithPivots};

template <class T>
class HouseholderProductItem : public Frame {
 public:
  using Frame::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    Workspace workspace;
    T* a = loaded<T>(workspace, pointers, item, 0);
    T* tau = loaded<T>(workspace, pointers, item, 1);
    blas::orgqr(rows(0), columns(0), rows(1), a, tau);
    values_[2].store(pointers, item, a);
  }
};

/// The factors and their reflectors.
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
const RegisterKernel kProduct{"popx.householderProduct", batch::make<HouseholderProductItem>,
                              checkProduct};

template <class T>
class HouseholderMultiplyItem : public Frame {
 public:
  explicit HouseholderMultiplyItem(const StepDesc& step)
      : Frame(step),
        left_(step.attributes.integer("left") != 0),
        adjoint_(step.attributes.integer("adjoint") != 0) {}
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    Workspace workspace;
    T* a = loaded<T>(workspace, pointers, item, 0);
    T* tau = loaded<T>(workspace, pointers, item, 1);
    T* c = loaded<T>(workspace, pointers, item, 2);
    blas::ormqr(left_ ? 'L' : 'R', adjoint_, rows(2), columns(2), rows(1), a, rows(0), tau, c);
    values_[3].store(pointers, item, c);
  }

 private:
  bool left_;
  bool adjoint_;
};

void checkMultiply(StepCheck& check) {
  batch::ValuesCheck values(check);
  checkReflectors(check, values);
  const auto target = values.next(2);
  check.flag("adjoint");
  check.need(target[check.flag("left") ? 0 : 1] == values.rows(), "a matrix that Q fits");
  values.in(target).out(target).end();
}
const RegisterKernel kMultiply{"popx.householderMultiply", batch::make<HouseholderMultiplyItem>,
                               checkMultiply};

}  // namespace
}  // namespace ipujax::engine
