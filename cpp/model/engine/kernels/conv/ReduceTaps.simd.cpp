#include "engine/kernels/reduce/ReduceKernels.hpp"
#include "engine/kernels/reduce/ReduceOps.hpp"

namespace ipujax::engine::reduction {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

/// Reduces kVectors vectors of lanes, which are contiguous or, with kEven, every second one.
template <class In, class Op, int kVectors, bool kEven>
FORCE_INLINE void tapVectors(const TapBlock& block, std::int64_t at, typename Input<In>::Acc* acc) {
  using Acc = typename Input<In>::Acc;
  constexpr int kL = kLanes<Acc>;
  Vector<Acc> a[kVectors];
  for (auto& v : a) v = splat(Op::template identity<Acc>);
  const In* row = static_cast<const In*>(block.x) + at * (kEven ? 2 : 1);
  for (std::int64_t r = 0; r < block.rows; ++r, row += block.row_stride) {
    const In* x = row;
    for (std::int64_t c = 0; c < block.columns; ++c, x += block.column_stride) {
      for (int v = 0; v < kVectors; ++v) {
        if constexpr (kEven) {
          Vector<Acc> even = loadEven(x + 2 * v * kL);
          Op::pre(even);
          Op::into(a[v], even);
        } else {
          take<In, Op>(a[v], x + v * kL);
        }
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) stored(acc + at + v * kL, a[v]);
}

template <class In, class Op>
FORCE_INLINE void tapOne(const TapBlock& block, std::int64_t at, typename Input<In>::Acc* acc) {
  using Acc = typename Input<In>::Acc;
  Acc a = Op::template identity<Acc>;
  const In* row = static_cast<const In*>(block.x) + at * block.lane_stride;
  for (std::int64_t r = 0; r < block.rows; ++r, row += block.row_stride) {
    for (std::int64_t c = 0; c < block.columns; ++c) take<In, Op>(a, row + c * block.column_stride);
  }
  acc[at] = a;
}

/// The vector loops end early enough not to read past the last lane.
template <class In, class Op>
void taps(const TapBlock& block, void* accv, std::int64_t lanes) {
  using Acc = typename Input<In>::Acc;
  constexpr int kL = kLanes<Acc>;
  Acc* acc = static_cast<Acc*>(accv);
  std::int64_t l = 0;
  if (block.lane_stride == 1) {
    for (; l + 4 * kL <= lanes; l += 4 * kL) tapVectors<In, Op, 4, false>(block, l, acc);
    for (; l + kL <= lanes; l += kL) tapVectors<In, Op, 1, false>(block, l, acc);
    // The last vector recomputes some lanes, with the same values.
    if (l < lanes && lanes >= kL) {
      tapVectors<In, Op, 1, false>(block, lanes - kL, acc);
      return;
    }
  } else if constexpr (sizeof(Acc) == 4 && std::is_same_v<In, Acc>) {
    if (block.lane_stride == 2) {
      for (; l + kL < lanes; l += kL) tapVectors<In, Op, 1, true>(block, l, acc);
    }
  }
  for (; l < lanes; ++l) tapOne<In, Op>(block, l, acc);
}

TapTable makeTable() {
  TapTable table{};
  const auto put = [&](Reducer reducer, ElementType type, TapLoop loop) {
    table.loops[static_cast<int>(reducer)][static_cast<int>(type)] = loop;
  };
  put(Reducer::kAdd, ElementType::kFloat, taps<float, Add>);
  put(Reducer::kMaximum, ElementType::kFloat, taps<float, Maximum>);
  put(Reducer::kMinimum, ElementType::kFloat, taps<float, Minimum>);
  put(Reducer::kMultiply, ElementType::kFloat, taps<float, Multiply>);
  put(Reducer::kAdd, ElementType::kHalf, taps<Half, Add>);
  put(Reducer::kMaximum, ElementType::kHalf, taps<Half, Maximum>);
  put(Reducer::kMinimum, ElementType::kHalf, taps<Half, Minimum>);
  put(Reducer::kAdd, ElementType::kInt32, taps<std::uint32_t, Add>);
  put(Reducer::kMaximum, ElementType::kInt32, taps<std::int32_t, Maximum>);
  put(Reducer::kMinimum, ElementType::kInt32, taps<std::int32_t, Minimum>);
  return table;
}

}  // namespace

const TapTable& tapTable() {
  static const TapTable table = makeTable();
  return table;
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::reduction
