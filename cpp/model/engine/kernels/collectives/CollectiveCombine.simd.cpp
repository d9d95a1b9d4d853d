#include "engine/kernels/collectives/CollectiveCombine.hpp"

#include "engine/kernels/reduce/ReduceOps.hpp"

namespace ipujax::engine::collective {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

namespace ops = reduction::IPUJAX_ISA_NAMESPACE;
using reduction::Reducer;

/// Combines the elements of all arrays from k on, in kVectors vectors of accumulators.
template <class In, class Op, int kVectors>
FORCE_INLINE void combineAt(const In* const* ins, std::size_t num_ins, std::int64_t k,
                            typename ops::Input<In>::Acc* acc, bool more) {
  using Acc = typename ops::Input<In>::Acc;
  constexpr int kL = ops::kLanes<Acc>;
  ops::Vector<Acc> a[kVectors];
  std::size_t i = 0;
  if (more) {
    for (int v = 0; v < kVectors; ++v) a[v] = ops::loaded(acc + k + v * kL);
  } else {
    for (int v = 0; v < kVectors; ++v) ops::first<In, Op>(a[v], ins[0] + k + v * kL);
    i = 1;
  }
  for (; i < num_ins; ++i) {
    for (int v = 0; v < kVectors; ++v) ops::take<In, Op>(a[v], ins[i] + k + v * kL);
  }
  for (int v = 0; v < kVectors; ++v) ops::stored(acc + k + v * kL, a[v]);
}

template <class In, class Op>
void combine(const void* const* arrays, std::size_t num_ins, std::int64_t n, void* result,
             bool more) {
  using Acc = typename ops::Input<In>::Acc;
  constexpr int kL = ops::kLanes<Acc>;
  const In* const* ins = reinterpret_cast<const In* const*>(arrays);
  Acc* acc = static_cast<Acc*>(result);
  std::int64_t k = 0;
  for (; k + 4 * kL <= n; k += 4 * kL) combineAt<In, Op, 4>(ins, num_ins, k, acc, more);
  for (; k + kL <= n; k += kL) combineAt<In, Op, 1>(ins, num_ins, k, acc, more);
  for (; k < n; ++k) {
    Acc a;
    std::size_t i = 0;
    if (more) {
      a = acc[k];
    } else {
      a = ops::Input<In>::one(ins[0] + k);
      Op::pre(a);
      i = 1;
    }
    for (; i < num_ins; ++i) ops::take<In, Op>(a, ins[i] + k);
    acc[k] = a;
  }
}

template <class Acc>
void divide(void* values, std::int64_t n, double divisor) {
  Acc* acc = static_cast<Acc*>(values);
  const Acc by = static_cast<Acc>(divisor);
  for (std::int64_t k = 0; k < n; ++k) acc[k] /= by;
}

CombineTable makeTable() {
  CombineTable table;
  ops::makeReducers([&]<class In, class Op>(Reducer reducer, ElementType type) {
    // No CollectiveOperator uses these two.
    if constexpr (!std::is_same_v<Op, ops::LogAdd> && !std::is_same_v<Op, ops::Xor>) {
      CombineLoops& loops = table.loops[static_cast<int>(reducer)][static_cast<int>(type)];
      loops.combine = combine<In, Op>;
      using Acc = typename ops::Input<In>::Acc;
      if constexpr (std::is_floating_point_v<Acc> && Op::kRounds) loops.divide = divide<Acc>;
    }
  });
  return table;
}

}  // namespace

const CombineTable& combineTable() {
  static const CombineTable table = makeTable();
  return table;
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::collective
