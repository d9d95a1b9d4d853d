#include <algorithm>
#include <numeric>

#include "engine/Errors.hpp"
#include "engine/Workspace.hpp"
#include "engine/blas/Lapack.hpp"
#include "engine/kernels/MatrixBatch.hpp"

namespace ipujax::engine {

namespace {

template <class T>
class LuItem {
 public:
  explicit LuItem(const StepDesc& step) : values_(batch::valuesOf(step)) {}
  std::int64_t items() const { return values_[0].items(); }
  std::int64_t flops() const { return values_[0].size() * values_[1].rows() / 2; }

  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    Workspace workspace;
    auto* a = workspace.get<T>(values_[0].size());
    auto* pivots = workspace.get<std::int32_t>(values_[2].size());
    values_[0].load(pointers, item, a);
    const std::int32_t status = blas::getrf(static_cast<int>(values_[0].rows()),
                                            static_cast<int>(values_[0].columns()), a, pivots);
    values_[1].store(pointers, item, a);
    values_[2].store(pointers, item, pivots);
    values_[3].store(pointers, item, &status);
  }

 private:
  std::vector<batch::Value> values_;
};

void checkLu(StepCheck& check) {
  batch::ValuesCheck values(check);
  values.first(2);
  values.out({values.rows(), values.columns()})
      .out({values.small()}, batch::ValuesCheck::Kind::kInteger)
      .status()
      .end();
}
const RegisterKernel kFactor{"popx.lu", batch::make<LuItem>, checkLu};

template <class>
class PivotsItem {
 public:
  explicit PivotsItem(const StepDesc& step) : values_(batch::valuesOf(step)) {}
  std::int64_t items() const { return values_[0].items(); }
  std::int64_t flops() const { return 4 * values_[1].rows(); }

  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    const std::int64_t k = values_[0].rows();
    const std::int64_t n = values_[1].rows();
    Workspace workspace;
    auto* swaps = workspace.get<std::int32_t>(k);
    auto* order = workspace.get<std::int32_t>(n);
    values_[0].load(pointers, item, swaps);
    std::iota(order, order + n, 0);
    for (std::int64_t i = 0; i < k; ++i) {
      // As jnp's x.at[j] reads and writes: from the end below 0, clamped, dropped where outside.
      const std::int64_t j = swaps[i] < 0 ? swaps[i] + n : swaps[i];
      const std::int32_t old = order[i];
      order[i] = order[std::clamp<std::int64_t>(j, 0, n - 1)];
      if (j >= 0 && j < n) order[j] = old;
    }
    values_[1].store(pointers, item, order);
  }

 private:
  std::vector<batch::Value> values_;
};

void checkPivots(StepCheck& check) {
  using Kind = batch::ValuesCheck::Kind;
  batch::ValuesCheck values(check);
  values.first(1, false, Kind::kInteger);
  check.need(!values.isComplex(), "real pivots");
  const auto order = values.next(1);
  check.need(values.rows() <= order[0], "at most one pivot for each row");
  values.out(order, Kind::kInteger).end();
}
const RegisterKernel kPermutation{"popx.permutationOfPivots", batch::make<PivotsItem>, checkPivots};

}  // namespace
}  // namespace ipujax::engine
