#include "popx/Eigen.hpp"

#include <algorithm>

#include "engine/Workspace.hpp"
#include "engine/blas/Lapack.hpp"

namespace popx {

namespace {

namespace engine = ipujax::engine;
using batch::Complex;

/// The frame of this file's kernels: square matrices in, status last.
template <class T>
class Frame {
 public:
  explicit Frame(const engine::StepDesc& step)
      : values_(batch::valuesOf(step)),
        flags_(step.attributes.integers("flags")),
        n_(values_[0].rows()) {}
  std::int64_t items() const { return values_[0].items(); }
  std::int64_t flops() const { return 8 * n_ * n_ * n_; }

 protected:
  int n() const { return static_cast<int>(n_); }
  T* loaded(engine::Workspace& workspace, std::span<std::byte* const> pointers,
            std::int64_t item) const {
    T* a = workspace.get<T>(n_ * n_);
    values_[0].load(pointers, item, a);
    return a;
  }
  void storeStatus(std::span<std::byte* const> pointers, std::int64_t item,
                   std::int32_t status) const {
    values_.back().store(pointers, item, &status);
  }

  std::vector<batch::Value> values_;
  engine::Attributes::Integers flags_;
  std::int64_t n_;
};

template <class T>
class EighItem : public Frame<T> {
 public:
  using Frame<T>::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    engine::Workspace workspace;
    T* a = this->loaded(workspace, pointers, item);
    float* w = workspace.get<float>(this->n_);
    const int status = engine::blas::heevd(this->flags_[0] ? 'L' : 'U', this->n(), a, w);
    this->values_[1].store(pointers, item, a);
    this->values_[2].store(pointers, item, w);
    this->storeStatus(pointers, item, status);
  }
};

using Kind = batch::ValuesCheck::Kind;

/// A square matrix first.
batch::ValuesCheck squareOf(engine::StepCheck& check) {
  batch::ValuesCheck values(check);
  values.first(2, true);
  return values;
}
std::int64_t lessOne(std::int64_t n) { return n == 0 ? 0 : n - 1; }

void checkEigh(engine::StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n, n}).out({n}, Kind::kReal).status().end(1);
}
const engine::RegisterKernel kHermitian{"popx.eigh", batch::make<EighItem>, checkEigh};

template <class T>
class TridiagonalItem : public Frame<T> {
 public:
  using Frame<T>::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    engine::Workspace workspace;
    T* a = this->loaded(workspace, pointers, item);
    float* d = workspace.get<float>(2 * this->n_);
    float* e = d + this->n_;
    T* tau = workspace.get<T>(this->n_);
    const int status = engine::blas::hetrd(this->flags_[0] ? 'L' : 'U', this->n(), a, d, e, tau);
    this->values_[1].store(pointers, item, a);
    this->values_[2].store(pointers, item, d);
    this->values_[3].store(pointers, item, e);
    this->values_[4].store(pointers, item, tau);
    this->storeStatus(pointers, item, status);
  }
};

void checkTridiagonal(engine::StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n, n}).out({n}, Kind::kReal).out({lessOne(n)}, Kind::kReal).out({lessOne(n)});
  values.status().end(1);
}
const engine::RegisterKernel kTridiagonal{"popx.tridiagonal", batch::make<TridiagonalItem>,
                                          checkTridiagonal};

template <class T>
class EigItem : public Frame<T> {
 public:
  using Frame<T>::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    const std::int64_t square = this->n_ * this->n_;
    engine::Workspace workspace;
    T* a = this->loaded(workspace, pointers, item);
    Complex* w = workspace.get<Complex>(this->n_);
    Complex* left = workspace.get<Complex>(2 * square);
    Complex* right = left + square;
    std::fill(left, left + 2 * square, Complex(0));
    const int status = engine::blas::geev(this->n(), a, w, this->flags_[0] ? left : nullptr,
                                          this->flags_[1] ? right : nullptr);
    this->values_[1].store(pointers, item, w);
    this->values_[2].store(pointers, item, left);
    this->values_[3].store(pointers, item, right);
    this->storeStatus(pointers, item, status);
  }
};

void checkEig(engine::StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n}, Kind::kComplex).out({n, n}, Kind::kComplex).out({n, n}, Kind::kComplex);
  values.status().end(2);
}
const engine::RegisterKernel kGeneral{"popx.eig", batch::make<EigItem>, checkEig};

template <class T>
class SchurItem : public Frame<T> {
 public:
  using Frame<T>::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    const std::int64_t square = this->n_ * this->n_;
    engine::Workspace workspace;
    T* a = this->loaded(workspace, pointers, item);
    T* vectors = workspace.get<T>(square);
    std::fill(vectors, vectors + square, T(0));
    Complex* w = workspace.get<Complex>(this->n_);
    const int status = engine::blas::gees(this->n(), a, this->flags_[0] ? vectors : nullptr, w);
    this->values_[1].store(pointers, item, a);
    this->values_[2].store(pointers, item, vectors);
    this->values_[3].store(pointers, item, w);
    this->storeStatus(pointers, item, status);
  }
};

void checkSchur(engine::StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n, n}).out({n, n}).out({n}, Kind::kComplex).status().end(1);
}
const engine::RegisterKernel kSchur{"popx.schur", batch::make<SchurItem>, checkSchur};

template <class T>
class HessenbergItem : public Frame<T> {
 public:
  using Frame<T>::Frame;
  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    engine::Workspace workspace;
    T* a = this->loaded(workspace, pointers, item);
    T* tau = workspace.get<T>(this->n_);
    const int status = engine::blas::gehrd(this->n(), a, tau);
    this->values_[1].store(pointers, item, a);
    this->values_[2].store(pointers, item, tau);
    this->storeStatus(pointers, item, status);
  }
};

void checkHessenberg(engine::StepCheck& check) {
  auto values = squareOf(check);
  const std::int64_t n = values.rows();
  values.out({n, n}).out({lessOne(n)}).status().end(0);
}
const engine::RegisterKernel kHessenberg{"popx.hessenberg", batch::make<HessenbergItem>,
                                         checkHessenberg};

/// Checks A, and emits the step whose results have these shapes behind the batch dimensions.
struct Result {
  std::vector<std::size_t> shape;
  bool complex;
};

std::vector<Parts> emitSquare(poplar::Graph& graph, const std::string& name, const Parts& a,
                              engine::Attributes::Integers flags,
                              const std::vector<Result>& results, double cubes,
                              poplar::program::Sequence& prog,
                              const poplar::DebugContext& debugContext) {
  const auto leading = batch::leading(a, 2);
  const std::uint64_t n = a[0].shape().back();
  const double size = static_cast<double>(n);
  std::vector<batch::Output> outputs;
  for (const Result& result : results) {
    outputs.push_back({batch::shapeOf(leading, result.shape),
                       static_cast<unsigned>(result.shape.size()), result.complex});
  }
  outputs.push_back({leading, 0, false, poplar::INT});
  engine::Attributes attributes;
  attributes.set("flags", std::move(flags));
  return batch::emit(graph, "popx." + name, {{a, 2}}, outputs, std::move(attributes),
                     batch::cost(graph, batch::product(leading), n, n, 3 * size,
                                 cubes * size * size * size, a.size() == 2),
                     prog, {debugContext, name});
}

std::size_t sizeOf(const Parts& a) { return a[0].shape().back(); }

}  // namespace

// The multiples of n^3 are those of LAPACK's working note 41 and of Golub and Van Loan's book.

std::vector<Parts> eigh(poplar::Graph& graph, const Parts& a, bool lower,
                        poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  batch::check("popx::eigh", a, 2, true);
  const std::size_t n = sizeOf(a);
  return emitSquare(graph, "eigh", a, {lower}, {{{n, n}, a.size() == 2}, {{n}, false}}, 9, prog,
                    debugContext);
}

std::vector<Parts> tridiagonal(poplar::Graph& graph, const Parts& a, bool lower,
                               poplar::program::Sequence& prog,
                               const poplar::DebugContext& debugContext) {
  batch::check("popx::tridiagonal", a, 2, true);
  const std::size_t n = sizeOf(a);
  const bool complex = a.size() == 2;
  return emitSquare(
      graph, "tridiagonal", a, {lower},
      {{{n, n}, complex}, {{n}, false}, {{n - (n > 0)}, false}, {{n - (n > 0)}, complex}}, 4.0 / 3,
      prog, debugContext);
}

std::vector<Parts> eig(poplar::Graph& graph, const Parts& a, bool left, bool right,
                       poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  batch::check("popx::eig", a, 2, true);
  const std::size_t n = sizeOf(a);
  return emitSquare(graph, "eig", a, {left, right}, {{{n}, true}, {{n, n}, true}, {{n, n}, true}},
                    left || right ? 25 : 10, prog, debugContext);
}

std::vector<Parts> schur(poplar::Graph& graph, const Parts& a, bool vectors,
                         poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext) {
  batch::check("popx::schur", a, 2, true);
  const std::size_t n = sizeOf(a);
  const bool complex = a.size() == 2;
  return emitSquare(graph, "schur", a, {vectors},
                    {{{n, n}, complex}, {{n, n}, complex}, {{n}, true}}, vectors ? 25 : 10, prog,
                    debugContext);
}

std::vector<Parts> hessenberg(poplar::Graph& graph, const Parts& a, poplar::program::Sequence& prog,
                              const poplar::DebugContext& debugContext) {
  batch::check("popx::hessenberg", a, 2, true);
  const std::size_t n = sizeOf(a);
  const bool complex = a.size() == 2;
  return emitSquare(graph, "hessenberg", a, {}, {{{n, n}, complex}, {{n - (n > 0)}, complex}},
                    10.0 / 3, prog, debugContext);
}

}  // namespace popx
