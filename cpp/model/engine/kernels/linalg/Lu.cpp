#include <algorithm>
#include <numeric>

#include "engine/blas/Lapack.hpp"
#include "engine/kernels/linalg/MatrixBatch.hpp"

namespace ipujax::engine {

namespace {

std::unique_ptr<Kernel> makeLu(const StepDesc& step) {
  const auto values = batch::valuesOf(step);
  const std::int64_t flops = values[0].size() * values[1].rows() / 2;
  return batch::make(step, values, flops, []<class T>(batch::Item& item, T) {
    T* a = item.load<T>(0);
    auto* pivots = item.room<std::int32_t>(item.size(2));
    const int status = blas::getrf(item.rows(0), item.columns(0), a, pivots);
    item.store(1, a, pivots, &status);
  });
}

void checkLu(StepCheck& check) {
  batch::ValuesCheck values(check);
  values.first(2);
  values.out({values.rows(), values.columns()})
      .out({values.small()}, batch::ValuesCheck::Kind::kInteger)
      .status()
      .end();
}
const RegisterKernel kFactor{"popx.lu", makeLu, checkLu};

std::unique_ptr<Kernel> makePermutation(const StepDesc& step) {
  const auto values = batch::valuesOf(step);
  return batch::make(step, values, 4 * values[1].rows(), [](batch::Item& item, auto) {
    const std::int64_t n = item.rows(1);
    const auto* swaps = item.load<std::int32_t>(0);
    auto* order = item.room<std::int32_t>(n);
    std::iota(order, order + n, 0);
    for (std::int64_t i = 0; i < item.rows(0); ++i) {
      // As jnp's x.at[j]: j < 0 counts from the end; outside, reads clamp and writes are dropped.
      const std::int64_t j = swaps[i] < 0 ? swaps[i] + n : swaps[i];
      const std::int32_t old = order[i];
      order[i] = order[std::clamp<std::int64_t>(j, 0, n - 1)];
      if (j >= 0 && j < n) order[j] = old;
    }
    item.store(1, order);
  });
}

void checkPivots(StepCheck& check) {
  using Kind = batch::ValuesCheck::Kind;
  batch::ValuesCheck values(check);
  values.first(1, false, Kind::kInteger);
  check.need(!values.isComplex(), "real pivots");
  const auto order = values.next(1);
  check.need(values.rows() <= order[0], "at most one pivot for each row");
  values.out(order, Kind::kInteger).end();
}
const RegisterKernel kPermutation{"popx.permutationOfPivots", makePermutation, checkPivots};

}  // namespace
}  // namespace ipujax::engine
