#include "engine/blas/Lapack.hpp"
#include "engine/kernels/linalg/MatrixBatch.hpp"

namespace ipujax::engine {

namespace {

/// BLAS sees the rows as columns, so it solves X^T op(A)^T = B^T: the other side, the other
/// triangle.
std::unique_ptr<Kernel> makeTriangularSolve(const StepDesc& step) {
  auto values = batch::valuesOf(step);
  for (auto& value : values) value = value.transposed();
  const auto& flags = step.attributes.integers("flags");
  const char side = flags[0] == 'L' ? 'R' : 'L';
  const char triangle = flags[1] == 'L' ? 'U' : 'L';
  const auto transposition = static_cast<char>(flags[2]);
  const auto diagonal = static_cast<char>(flags[3]);
  const std::int64_t flops = values[0].rows() * values[1].size();
  return batch::make(step, values, flops, [=]<class T>(batch::Item& item, T) {
    const T* a = item.load<T>(0);
    T* b = item.load<T>(1);
    blas::trsm(side, triangle, transposition, diagonal, item.rows(1), item.columns(1), a, b);
    item.store(2, b);
  });
}

void checkTriangularSolve(StepCheck& check) {
  const auto& flags = check.integers("flags", 4);
  const std::string allowed[] = {"LR", "LU", "NTC", "UN"};
  for (std::size_t i = 0; i < 4; ++i)
    check.need(flags[i] > 0 && flags[i] < 128 &&
                   allowed[i].find(static_cast<char>(flags[i])) != std::string::npos,
               "LAPACK's letters");
  batch::ValuesCheck values(check);
  values.first(2, true);
  const auto b = values.next(2);
  check.need(b[flags[0] == 'L' ? 0 : 1] == values.rows(), "a right side that fits the triangle");
  values.in(b).out(b).end();
}
const RegisterKernel kTriangle{"popx.triangularSolve", makeTriangularSolve, checkTriangularSolve};

std::unique_ptr<Kernel> makeTridiagonalSolve(const StepDesc& step) {
  const auto values = batch::valuesOf(step);
  const bool perturb = step.attributes.integer("perturb") != 0;
  return batch::make(step, values, 8 * values[3].size(), [perturb]<class T>(batch::Item& item, T) {
    T* lower = item.load<T>(0);
    T* diagonal = item.load<T>(1);
    T* upper = item.load<T>(2);
    T* b = item.load<T>(3);
    const auto solve = perturb ? blas::gtsvPerturbed<T> : blas::gtsv<T>;
    const int status = solve(item.rows(3), item.columns(3), lower + 1, diagonal, upper, b);
    item.store(4, b, &status);
  });
}

void checkTridiagonalSolve(StepCheck& check) {
  batch::ValuesCheck values(check);
  values.first(1);
  const std::int64_t n = values.rows();
  values.in({n}).in({n});
  const auto b = values.next(2);
  check.need(b[0] == n, "a right side as long as the diagonals");
  check.flag("perturb");
  values.in(b).out(b).status().end();
}
const RegisterKernel kTridiagonal{"popx.tridiagonalSolve", makeTridiagonalSolve,
                                  checkTridiagonalSolve};

}  // namespace
}  // namespace ipujax::engine
