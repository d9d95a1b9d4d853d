#include "engine/kernels/collectives/CollectiveCombine.hpp"

#include "engine/kernels/reduce/ReduceOps.hpp"

namespace ipujax::engine::collective {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

namespace ops = reduction::IPUJAX_ISA_NAMESPACE;
using reduction::Reducer;

/// a = the balanced tree over kLeaves arrays, from element k on. A is an accumulator or a vector.
template <class In, class Op, int kLeaves, int kCount, class A>
FORCE_INLINE void treeAt(const In* const* ins, std::int64_t k, A* a) {
  constexpr int kLanesOfA = sizeof(A) / sizeof(typename ops::Input<In>::Acc);
  if constexpr (kLeaves == 1) {
    for (int v = 0; v < kCount; ++v) {
      if constexpr (kLanesOfA == 1) {
        a[v] = ops::Input<In>::one(ins[0] + k + v);
        Op::pre(a[v]);
      } else {
        ops::first<In, Op>(a[v], ins[0] + k + v * kLanesOfA);
      }
    }
  } else {
    A right[kCount];
    treeAt<In, Op, kLeaves / 2, kCount>(ins, k, a);
    treeAt<In, Op, kLeaves / 2, kCount>(ins + kLeaves / 2, k, right);
    for (int v = 0; v < kCount; ++v) Op::into(a[v], right[v]);
  }
}

template <class In, class Op, int kLeaves>
void combineSome(const In* const* ins, std::int64_t n, typename ops::Input<In>::Acc* acc) {
  using Acc = typename ops::Input<In>::Acc;
  constexpr int kL = ops::kLanes<Acc>;
  std::int64_t k = 0;
  for (; k + 2 * kL <= n; k += 2 * kL) {
    ops::Vector<Acc> a[2];
    treeAt<In, Op, kLeaves, 2>(ins, k, a);
    for (int v = 0; v < 2; ++v) ops::stored(acc + k + v * kL, a[v]);
  }
  for (; k < n; ++k) treeAt<In, Op, kLeaves, 1>(ins, k, acc + k);
}

template <class In, class Op>
void combine(const void* const* arrays, std::size_t num_ins, std::int64_t n, void* result) {
  const In* const* ins = reinterpret_cast<const In* const*>(arrays);
  auto* acc = static_cast<typename ops::Input<In>::Acc*>(result);
  if (num_ins == 1) return combineSome<In, Op, 1>(ins, n, acc);
  if (num_ins == 2) return combineSome<In, Op, 2>(ins, n, acc);
  if (num_ins == 4) return combineSome<In, Op, 4>(ins, n, acc);
  combineSome<In, Op, 8>(ins, n, acc);
}

template <class Acc, class Op>
void join(const void* left, const void* right, std::int64_t n, void* result) {
  constexpr int kL = ops::kLanes<Acc>;
  const auto* a = static_cast<const Acc*>(left);
  const auto* b = static_cast<const Acc*>(right);
  auto* acc = static_cast<Acc*>(result);
  std::int64_t k = 0;
  for (; k + kL <= n; k += kL) {
    auto joined = ops::loaded(a + k);
    Op::into(joined, ops::loaded(b + k));
    ops::stored(acc + k, joined);
  }
  for (; k < n; ++k) {
    Acc joined = a[k];
    Op::into(joined, b[k]);
    acc[k] = joined;
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
      using Acc = typename ops::Input<In>::Acc;
      loops.combine = combine<In, Op>;
      loops.join = join<Acc, Op>;
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
