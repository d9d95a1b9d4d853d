#include "engine/Errors.hpp"
#include "engine/Workspace.hpp"
#include "engine/blas/Lapack.hpp"
#include "engine/kernels/MatrixBatch.hpp"

namespace ipujax::engine {

namespace {

/// BLAS sees the rows as columns, so it solves X^T op(A)^T = B^T: the other side, the other
/// triangle.
template <class T>
class TriangularSolveItem {
 public:
  explicit TriangularSolveItem(const StepDesc& step)
      : values_(batch::valuesOf(step)), flags_(step.attributes.integers("flags")) {
    for (auto& value : values_) value = value.transposed();
    flags_[0] = flags_[0] == 'L' ? 'R' : 'L';
    flags_[1] = flags_[1] == 'L' ? 'U' : 'L';
  }

  std::int64_t items() const { return values_[1].items(); }
  std::int64_t flops() const { return values_[0].rows() * values_[1].size(); }

  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    Workspace workspace;
    auto* a = workspace.get<T>(values_[0].size());
    auto* b = workspace.get<T>(values_[1].size());
    values_[0].load(pointers, item, a);
    values_[1].load(pointers, item, b);
    blas::trsm(flag(0), flag(1), flag(2), flag(3), static_cast<int>(values_[1].rows()),
               static_cast<int>(values_[1].columns()), a, b);
    values_[2].store(pointers, item, b);
  }

 private:
  char flag(std::size_t i) const { return static_cast<char>(flags_[i]); }

  std::vector<batch::Value> values_;
  Attributes::Integers flags_;  // LAPACK's letters: side, triangle, transposition, diagonal
};

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
const RegisterKernel kTriangle{"popx.triangularSolve", batch::make<TriangularSolveItem>,
                               checkTriangularSolve};

template <class T>
class TridiagonalSolveItem {
 public:
  explicit TridiagonalSolveItem(const StepDesc& step)
      : values_(batch::valuesOf(step)), perturb_(step.attributes.integer("perturb") != 0) {}

  std::int64_t items() const { return values_[3].items(); }
  std::int64_t flops() const { return 8 * values_[3].size(); }

  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    const std::int64_t n = values_[3].rows();
    Workspace workspace;
    auto* lower = workspace.get<T>(3 * n);
    T* diagonal = lower + n;
    T* upper = diagonal + n;
    auto* b = workspace.get<T>(values_[3].size());
    values_[0].load(pointers, item, lower);
    values_[1].load(pointers, item, diagonal);
    values_[2].load(pointers, item, upper);
    values_[3].load(pointers, item, b);
    const std::int32_t status = solve(static_cast<int>(n), static_cast<int>(values_[3].columns()),
                                      lower + 1, diagonal, upper, b);
    values_[4].store(pointers, item, b);
    values_[5].store(pointers, item, &status);
  }

 private:
  int solve(int n, int columns, T* lower, T* diagonal, T* upper, T* b) const {
    if constexpr (std::is_same_v<T, float>) {
      if (perturb_) return blas::gtsvPerturbed(n, columns, lower, diagonal, upper, b);
    }
    return blas::gtsv(n, columns, lower, diagonal, upper, b);
  }

  std::vector<batch::Value> values_;
  bool perturb_;
};

void checkTridiagonalSolve(StepCheck& check) {
  batch::ValuesCheck values(check);
  values.first(1);
  const std::int64_t n = values.rows();
  values.in({n}).in({n});
  const auto b = values.next(2);
  check.need(b[0] == n, "a right side as long as the diagonals");
  check.need(!check.flag("perturb") || !values.isComplex(), "real numbers to perturb pivots");
  values.in(b).out(b).status().end();
}
const RegisterKernel kTridiagonal{"popx.tridiagonalSolve", batch::make<TridiagonalSolveItem>,
                                  checkTridiagonalSolve};

}  // namespace
}  // namespace ipujax::engine
