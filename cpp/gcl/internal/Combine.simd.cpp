#include "gcl/internal/Combine.hpp"

#include "engine/kernels/ReduceOps.hpp"

namespace gcl {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

namespace reduction = ipujax::engine::reduction;
namespace ops = ipujax::engine::reduction::IPUJAX_ISA_NAMESPACE;
using ipujax::engine::ElementType;
using reduction::Reducer;

/// kVectors vectors of accumulators at element k of every array.
template <class In, class Op, int kVectors>
FORCE_INLINE void combineAt(const In* const* ins, std::size_t num_ins, std::int64_t k,
                            typename ops::Input<In>::Acc* acc, bool more) {
  using Acc = typename ops::Input<In>::Acc;
  constexpr int kL = ops::kLanes<Acc>;
  ops::Vector<Acc> a[kVectors];
  std::size_t i = 0;
  if (more) {
    std::memcpy(a, acc + k, sizeof a);
  } else {
    for (int v = 0; v < kVectors; ++v) ops::first<In, Op>(a[v], ins[0] + k + v * kL);
    i = 1;
  }
  for (; i < num_ins; ++i) {
    for (int v = 0; v < kVectors; ++v) ops::take<In, Op>(a[v], ins[i] + k + v * kL);
  }
  std::memcpy(acc + k, a, sizeof a);
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

CombineLoops& slot(CombineTable& table, Reducer reducer, ElementType type) {
  return table.loops[static_cast<int>(reducer)][static_cast<int>(type)];
}

template <class In>
void addFloats(CombineTable& table, ElementType type) {
  using Acc = typename ops::Input<In>::Acc;
  slot(table, Reducer::kAdd, type) = {combine<In, ops::Add>, divide<Acc>};
  slot(table, Reducer::kSquareAdd, type) = {combine<In, ops::SquareAdd>, divide<Acc>};
  slot(table, Reducer::kMultiply, type) = {combine<In, ops::Multiply>, nullptr};
  slot(table, Reducer::kMinimum, type) = {combine<In, ops::Minimum>, nullptr};
  slot(table, Reducer::kMaximum, type) = {combine<In, ops::Maximum>, nullptr};
}

template <class Signed, class Unsigned>
void addIntegers(CombineTable& table, ElementType signed_type, ElementType unsigned_type) {
  for (ElementType type : {signed_type, unsigned_type}) {
    slot(table, Reducer::kAdd, type) = {combine<Unsigned, ops::Add>, nullptr};
    slot(table, Reducer::kSquareAdd, type) = {combine<Unsigned, ops::SquareAdd>, nullptr};
    slot(table, Reducer::kMultiply, type) = {combine<Unsigned, ops::Multiply>, nullptr};
    slot(table, Reducer::kAnd, type) = {combine<Unsigned, ops::And>, nullptr};
    slot(table, Reducer::kOr, type) = {combine<Unsigned, ops::Or>, nullptr};
  }
  slot(table, Reducer::kMinimum, signed_type) = {combine<Signed, ops::Minimum>, nullptr};
  slot(table, Reducer::kMaximum, signed_type) = {combine<Signed, ops::Maximum>, nullptr};
  slot(table, Reducer::kMinimum, unsigned_type) = {combine<Unsigned, ops::Minimum>, nullptr};
  slot(table, Reducer::kMaximum, unsigned_type) = {combine<Unsigned, ops::Maximum>, nullptr};
}

void addBool(CombineTable& table) {
  for (Reducer r : {Reducer::kAnd, Reducer::kMultiply, Reducer::kMinimum}) {
    slot(table, r, ElementType::kBool) = {combine<std::uint8_t, ops::And>, nullptr};
  }
  for (Reducer r : {Reducer::kOr, Reducer::kAdd, Reducer::kMaximum}) {
    slot(table, r, ElementType::kBool) = {combine<std::uint8_t, ops::Or>, nullptr};
  }
}

CombineTable makeTable() {
  CombineTable table;
  addFloats<float>(table, ElementType::kFloat);
  addFloats<ops::Half>(table, ElementType::kHalf);
  addFloats<double>(table, ElementType::kDouble);
  addIntegers<std::int8_t, std::uint8_t>(table, ElementType::kInt8, ElementType::kUInt8);
  addIntegers<std::int16_t, std::uint16_t>(table, ElementType::kInt16, ElementType::kUInt16);
  addIntegers<std::int32_t, std::uint32_t>(table, ElementType::kInt32, ElementType::kUInt32);
  addIntegers<std::int64_t, std::uint64_t>(table, ElementType::kInt64, ElementType::kUInt64);
  addBool(table);
  return table;
}

}  // namespace

const CombineTable& combineTable() {
  static const CombineTable table = makeTable();
  return table;
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace gcl
