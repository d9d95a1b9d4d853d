#include "popx/Lu.hpp"

#include <algorithm>
#include <numeric>

#include "engine/blas/Lapack.hpp"
#include "poplar/exceptions.hpp"

namespace popx {

namespace {

namespace engine = ipujax::engine;

template <class T>
class LuItem {
 public:
  explicit LuItem(const engine::StepDesc& step) : values_(batch::valuesOf(step)) {}
  std::int64_t items() const { return values_[0].items(); }
  std::int64_t flops() const { return values_[0].size() * values_[1].rows() / 2; }

  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    T* a = batch::memory<T, 0>(values_[0].size());
    std::int32_t* pivots = batch::memory<std::int32_t, 1>(values_[2].size());
    values_[0].load(pointers, item, a);
    const std::int32_t status = engine::blas::getrf(
        static_cast<int>(values_[0].rows()), static_cast<int>(values_[0].columns()), a, pivots);
    values_[1].store(pointers, item, a);
    values_[2].store(pointers, item, pivots);
    values_[3].store(pointers, item, &status);
  }

 private:
  std::vector<batch::Value> values_;
};

void checkLu(engine::StepCheck& check) {
  batch::ValuesCheck values(check);
  values.first(2);
  values.out({values.rows(), values.columns()})
      .out({values.small()}, batch::ValuesCheck::Kind::kInteger)
      .status()
      .end();
}
const engine::RegisterKernel kFactor{"popx.lu", batch::make<LuItem>, checkLu};

template <class>
class PivotsItem {
 public:
  explicit PivotsItem(const engine::StepDesc& step) : values_(batch::valuesOf(step)) {}
  std::int64_t items() const { return values_[0].items(); }
  std::int64_t flops() const { return 4 * values_[1].rows(); }

  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    const std::int64_t k = values_[0].rows();
    const std::int64_t n = values_[1].rows();
    std::int32_t* swaps = batch::memory<std::int32_t, 0>(k);
    std::int32_t* order = batch::memory<std::int32_t, 1>(n);
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

void checkPivots(engine::StepCheck& check) {
  using Kind = batch::ValuesCheck::Kind;
  batch::ValuesCheck values(check);
  values.first(1, false, Kind::kInteger);
  check.need(!values.isComplex(), "real pivots");
  const auto order = values.next(1);
  check.need(values.rows() <= order[0], "at most one pivot for each row");
  values.out(order, Kind::kInteger).end();
}
const engine::RegisterKernel kPermutation{"popx.permutationOfPivots", batch::make<PivotsItem>,
                                          checkPivots};

}  // namespace

std::vector<Parts> lu(poplar::Graph& graph, const Parts& a, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext) {
  batch::check("popx::lu", a, 2);
  const auto leading = batch::leading(a, 2);
  const std::uint64_t m = a[0].shape()[a[0].rank() - 2];
  const std::uint64_t n = a[0].shape().back();
  const std::uint64_t small = std::min(m, n);
  const double k = static_cast<double>(small);
  const double flops =
      2 * static_cast<double>(m * n) * k - static_cast<double>(m + n) * k * k + 2 * k * k * k / 3;
  return batch::emit(graph, "popx.lu", {{a, 2}},
                     {{a[0].shape(), 2, a.size() == 2},
                      {batch::shapeOf(leading, {small}), 1, false, poplar::INT},
                      {leading, 0, false, poplar::INT}},
                     {},
                     batch::cost(graph, batch::product(leading), m, n, 2 * k, flops, a.size() == 2),
                     prog, {debugContext, "lu"});
}

poplar::Tensor permutationOfPivots(poplar::Graph& graph, const poplar::Tensor& pivots,
                                   std::size_t size, poplar::program::Sequence& prog,
                                   const poplar::DebugContext& debugContext) {
  if (pivots.elementType() != poplar::INT || pivots.rank() == 0 || pivots.shape().back() > size) {
    throw poplar::poplar_error("[popx::permutationOfPivots] needs INT pivots, at most " +
                               std::to_string(size) + " a row; got " +
                               pivots.elementType().toString() + " " + pivots.shapeToString() +
                               ". Pass the pivots of popx::lu, minus 1.");
  }
  const auto leading = batch::leading({pivots}, 1);
  // Our estimate: a codelet with 8 cycles a swap, one worker a row.
  const double swaps = 48 * static_cast<double>(pivots.shape().back());
  return batch::emit(graph, "popx.permutationOfPivots", {{{pivots}, 1}},
                     {{batch::shapeOf(leading, {size}), 1, false, poplar::INT}}, {},
                     batch::cost(graph, batch::product(leading), size, 1, 1, swaps, false), prog,
                     {debugContext, "permutationOfPivots"})[0][0];
}

}  // namespace popx
