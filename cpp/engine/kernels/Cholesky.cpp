#include <cmath>
#include <limits>

#include "engine/Errors.hpp"
#include "engine/Workspace.hpp"
#include "engine/blas/Lapack.hpp"
#include "engine/kernels/MatrixBatch.hpp"

namespace ipujax::engine {

namespace {

/// LAPACK sees the rows as columns: A^T = conj(A) = U^H U with U = L^T, whose columns are L's rows.
template <class T>
class CholeskyItem {
 public:
  explicit CholeskyItem(const StepDesc& step)
      : values_(batch::valuesOf(step)), upper_(step.attributes.integer("lower") != 0) {
    for (auto& value : values_) value = value.transposed();
  }

  std::int64_t items() const { return values_[0].items(); }
  std::int64_t flops() const { return values_[0].rows() * values_[0].size() / 3; }

  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    const std::int64_t n = values_[0].rows();
    Workspace workspace;
    auto* a = workspace.get<T>(n * n);
    values_[0].load(pointers, item, a);
    const int status = blas::potrf(upper_ ? 'U' : 'L', static_cast<int>(n), a);
    if (status != 0) {
      values_[1].fill(pointers, item, batch::nan<T>());
      return;
    }
    for (std::int64_t c = 0; c < n; ++c) {
      T* column = a + c * n;
      upper_ ? std::fill(column + c + 1, column + n, T(0)) : std::fill(column, column + c, T(0));
    }
    values_[1].store(pointers, item, a);
  }

 private:
  std::vector<batch::Value> values_;
  bool upper_;  // of what LAPACK sees
};

void checkCholesky(StepCheck& check) {
  check.flag("lower");
  batch::ValuesCheck values(check);
  values.first(2, true).out({values.rows(), values.rows()}).end();
}

const RegisterKernel kCholesky{"popx.cholesky", batch::make<CholeskyItem>, checkCholesky};

}  // namespace
}  // namespace ipujax::engine
