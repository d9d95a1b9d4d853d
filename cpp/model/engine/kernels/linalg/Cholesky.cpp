#include <algorithm>

#include "engine/blas/Lapack.hpp"
#include "engine/kernels/linalg/MatrixBatch.hpp"

namespace ipujax::engine {

namespace {

/// LAPACK sees the rows as columns: A^T = conj(A) = U^H U with U = L^T, whose columns are L's rows.
std::unique_ptr<Kernel> makeCholesky(const StepDesc& step) {
  auto values = batch::valuesOf(step);
  for (auto& value : values) value = value.transposed();
  const bool upper = step.attributes.integer("lower") != 0;  // of what LAPACK sees
  const std::int64_t flops = values[0].rows() * values[0].size() / 3;
  return batch::make(step, values, flops, [upper]<class T>(batch::Item& item, T) {
    const std::int64_t n = item.rows(0);
    T* a = item.load<T>(0);
    const int status = blas::potrf(upper ? 'U' : 'L', static_cast<int>(n), a);
    if (status != 0) return item.fill(1, batch::nan<T>());
    for (std::int64_t c = 0; c < n; ++c) {
      T* column = a + c * n;
      upper ? std::fill(column + c + 1, column + n, T(0)) : std::fill(column, column + c, T(0));
    }
    item.store(1, a);
  });
}

void checkCholesky(StepCheck& check) {
  check.flag("lower");
  batch::ValuesCheck values(check);
  values.first(2, true).out({values.rows(), values.rows()}).end();
}

const RegisterKernel kCholesky{"popx.cholesky", makeCholesky, checkCholesky};

}  // namespace
}  // namespace ipujax::engine
