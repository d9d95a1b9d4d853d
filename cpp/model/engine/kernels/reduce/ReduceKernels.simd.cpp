#include "engine/kernels/reduce/ReduceKernels.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "engine/kernels/reduce/ReduceOps.hpp"

namespace ipujax::engine::reduction {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kPairwiseBlock = 4096;  // ReduceLoops.hpp's kPieceElements

template <class In, class Op, class Acc = typename Input<In>::Acc>
FORCE_INLINE Acc rowBlock(const In* x, std::int64_t n) {
  constexpr int kL = kLanes<Acc>;
  std::int64_t i = 0;
  Vector<Acc> a0 = splat(Op::template identity<Acc>);
  if (n >= 4 * kL) {
    Vector<Acc> a1 = a0;
    Vector<Acc> a2 = a0;
    Vector<Acc> a3 = a0;
    for (; i + 4 * kL <= n; i += 4 * kL) {
      take<In, Op>(a0, x + i);
      take<In, Op>(a1, x + i + kL);
      take<In, Op>(a2, x + i + 2 * kL);
      take<In, Op>(a3, x + i + 3 * kL);
    }
    Op::into(a0, a1);
    Op::into(a2, a3);
    Op::into(a0, a2);
  }
  for (; i + kL <= n; i += kL) take<In, Op>(a0, x + i);
  takePart<In, Op>(a0, x + i, n - i);
  return foldVector<Acc, Op>(a0);
}

template <class In, class Op, class Acc = typename Input<In>::Acc>
Acc pairwise(const In* x, std::int64_t n) {
  if (n <= kPairwiseBlock) return rowBlock<In, Op>(x, n);
  const std::int64_t blocks = (n + kPairwiseBlock - 1) / kPairwiseBlock;
  // The left is a whole tree of 2^k blocks, so that another thread may compute it separately.
  const auto left =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(blocks - 1))) *
      kPairwiseBlock;
  Acc a = pairwise<In, Op>(x, left);
  Op::into(a, pairwise<In, Op>(x + left, n - left));
  return a;
}

template <class In, class Op>
void row(const void* x, std::int64_t n, void* acc) {
  using Acc = typename Input<In>::Acc;
  const In* in = static_cast<const In*>(x);
  Acc* a = static_cast<Acc*>(acc);
  if constexpr (std::is_floating_point_v<Acc>) {
    Op::into(*a, pairwise<In, Op>(in, n));
  } else {
    Op::into(*a, rowBlock<In, Op>(in, n));
  }
}

template <class In, class Op>
void rows(const void* x, std::int64_t row_stride, std::int64_t count, std::int64_t n, void* acc,
          std::int64_t acc_stride) {
  using Acc = typename Input<In>::Acc;
  const In* in = static_cast<const In*>(x);
  Acc* a = static_cast<Acc*>(acc);
  for (std::int64_t r = 0; r < count; ++r) {
    a[r * acc_stride] = rowBlock<In, Op>(in + r * row_stride, n);
  }
}

/// Up to four vectors of columns, held in registers over all rows.
template <class In, class Op, int kVectors>
FORCE_INLINE void columnRegisters(const In* x, std::int64_t row_stride, std::int64_t rows,
                                  typename Input<In>::Acc* acc) {
  using Acc = typename Input<In>::Acc;
  constexpr int kL = kLanes<Acc>;
  Vector<Acc> a[kVectors];
  for (int v = 0; v < kVectors; ++v) a[v] = loaded(acc + v * kL);
  for (std::int64_t r = 0; r < rows; ++r, x += row_stride) {
    for (int v = 0; v < kVectors; ++v) take<In, Op>(a[v], x + v * kL);
  }
  for (int v = 0; v < kVectors; ++v) stored(acc + v * kL, a[v]);
}

template <class In, class Op>
void columnTail(const In* x, std::int64_t row_stride, std::int64_t rows,
                typename Input<In>::Acc* acc, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r, x += row_stride) {
    for (std::int64_t c = 0; c < columns; ++c) take<In, Op>(acc[c], x + c);
  }
}

/// Combines eight rows at a time, so that memory is read in long runs. Returns the columns done.
template <class In, class Op>
std::int64_t columnStreams(const In* x, std::int64_t s, std::int64_t rows,
                           typename Input<In>::Acc* acc, std::int64_t columns) {
  using Acc = typename Input<In>::Acc;
  constexpr int kL = kLanes<Acc>;
  const std::int64_t whole = columns / kL * kL;
  std::int64_t r = 0;
  for (; r + 8 <= rows; r += 8, x += 8 * s) {
    for (std::int64_t c = 0; c < whole; c += kL) {
      const In* p = x + c;
      Vector<Acc> a = loaded(acc + c);
      Vector<Acc> b[4];
      for (int i = 0; i < 4; ++i) {
        first<In, Op>(b[i], p + i * s);
        take<In, Op>(b[i], p + (i + 4) * s);
      }
      Op::into(b[0], b[1]);
      Op::into(b[2], b[3]);
      Op::into(b[0], b[2]);
      Op::into(a, b[0]);
      stored(acc + c, a);
    }
  }
  for (; r < rows; ++r, x += s) {
    for (std::int64_t c = 0; c < whole; c += kL) {
      Vector<Acc> a = loaded(acc + c);
      take<In, Op>(a, x + c);
      stored(acc + c, a);
    }
  }
  return whole;
}

/// For contiguous rows that are not a multiple of a vector: combines groups of rows that are one.
template <class In, class Op>
std::int64_t columnGroups(const In* x, std::int64_t rows, typename Input<In>::Acc* acc,
                          std::int64_t columns) {
  using Acc = typename Input<In>::Acc;
  constexpr int kL = kLanes<Acc>;
  const std::int64_t group = kL / std::gcd(columns, std::int64_t{kL});
  if (group == 1 || columns > 64 || rows < 16 * group) return 0;
  alignas(64) Acc sums[64 * kL];
  const std::int64_t wide = columns * group;
  std::fill_n(sums, wide, Op::template identity<Acc>);
  columnStreams<In, Op>(x, wide, rows / group, sums, wide);
  for (std::int64_t r = 0; r < group; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) Op::into(acc[c], sums[r * columns + c]);
  }
  return rows / group * group;
}

template <class In, class Op>
void column(const void* xv, std::int64_t row_stride, std::int64_t rows, void* accv,
            std::int64_t columns) {
  using Acc = typename Input<In>::Acc;
  constexpr int kL = kLanes<Acc>;
  const In* x = static_cast<const In*>(xv);
  Acc* acc = static_cast<Acc*>(accv);
  std::int64_t c = 0;
  if (row_stride == columns && columns < 4 * kL && columns % kL != 0) {
    const std::int64_t done = columnGroups<In, Op>(x, rows, acc, columns);
    x += done * row_stride;
    rows -= done;
  }
  if (columns > 4 * kL) {
    c = columnStreams<In, Op>(x, row_stride, rows, acc, columns);
  } else if (columns == 4 * kL) {
    columnRegisters<In, Op, 4>(x, row_stride, rows, acc);
    return;
  } else {
    if (columns >= 2 * kL) {
      columnRegisters<In, Op, 2>(x, row_stride, rows, acc);
      c = 2 * kL;
    }
    if (columns - c >= kL) {
      columnRegisters<In, Op, 1>(x + c, row_stride, rows, acc + c);
      c += kL;
    }
  }
  if (c < columns) columnTail<In, Op>(x + c, row_stride, rows, acc + c, columns - c);
}

/// Accumulates whole vectors of kBytes, for the remainder of a row of a 4-byte type.
template <class T, int kBytes>
struct ShortVectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
};
template <class T, class Op, int kBytes>
FORCE_INLINE void accumulateShort(const T* x, T* acc, std::int64_t& k, std::int64_t n) {
  constexpr int kL = kBytes / static_cast<int>(sizeof(T));
  for (; k + kL <= n; k += kL) {
    typename ShortVectorOf<T, kBytes>::type a;
    typename ShortVectorOf<T, kBytes>::type b;
    std::memcpy(&a, acc + k, sizeof a);
    std::memcpy(&b, x + k, sizeof b);
    Op::pre(b);
    Op::into(a, b);
    std::memcpy(acc + k, &a, sizeof a);
  }
}

template <class In, class Op>
void accumulate(const void* xv, std::int64_t stride, void* accv, std::int64_t n) {
  using Acc = typename Input<In>::Acc;
  constexpr int kL = kLanes<Acc>;
  constexpr bool kWords =
      std::is_same_v<In, Acc> && sizeof(Acc) == 4 && !std::is_same_v<Op, LogAdd>;
  const In* x = static_cast<const In*>(xv);
  Acc* acc = static_cast<Acc*>(accv);
  std::int64_t k = 0;
  if (stride == 1) {
    for (; k + kL <= n; k += kL) {
      Vector<Acc> a = loaded(acc + k);
      take<In, Op>(a, x + k);
      stored(acc + k, a);
    }
    if constexpr (kWords) {
      if constexpr (kRegisterBytes > 16) accumulateShort<Acc, Op, 32>(x, acc, k, n);
      accumulateShort<Acc, Op, 16>(x, acc, k, n);
    }
  }
  if constexpr (kWords) {
    if (stride == 2) {  // the last vector would read one element too far
      for (; k + kL < n; k += kL) {
        Vector<Acc> a = loaded(acc + k);
        Vector<Acc> b = loadEven(x + 2 * k);
        Op::pre(b);
        Op::into(a, b);
        stored(acc + k, a);
      }
    }
  }
  for (; k < n; ++k) take<In, Op>(acc[k], x + k * stride);
}

template <class Acc, class Op>
void merge(const void* other, void* accv, std::int64_t n) {
  constexpr int kL = kLanes<Acc>;
  const Acc* x = static_cast<const Acc*>(other);
  Acc* acc = static_cast<Acc*>(accv);
  std::int64_t k = 0;
  for (; k + kL <= n; k += kL) {
    Vector<Acc> a = loaded(acc + k);
    Op::into(a, loaded(x + k));
    stored(acc + k, a);
  }
  for (; k < n; ++k) Op::into(acc[k], x[k]);
}

/// v[k] = op(carry, v[k]).
template <class Acc, class Op>
void carryInto(Acc carry, Acc* v, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) {
    Acc a = carry;
    Op::into(a, v[k]);
    v[k] = a;
  }
}

/// Prefixes of 16 lanes in four steps: each adds the value 1, 2, 4, 8 lanes before.
template <class T, class Op>
FORCE_INLINE void scanVector(Vector<T>& v, const Vector<T>& none) {
  const auto step = [&](Vector<T> s) {
    Op::into(s, v);
    v = s;
  };
  step(shifted<1>(v, none));
  step(shifted<2>(v, none));
  step(shifted<4>(v, none));
  step(shifted<8>(v, none));
}

template <class Acc, class Op>
void scanPlain(Acc* v, std::int64_t n) {
  std::int64_t k = 0;
  if constexpr (sizeof(Acc) == 4 && !std::is_same_v<Op, LogAdd>) {
    const Vector<Acc> none = splat(Op::template identity<Acc>);
    Vector<Acc> carry = none;
    for (; k + 16 <= n; k += 16) {
      Vector<Acc> x = loaded(v + k);
      scanVector<Acc, Op>(x, none);
      Vector<Acc> sum = carry;
      Op::into(sum, x);
      stored(v + k, sum);
      carry = splat(v[k + 15]);
    }
  }
  for (k = k > 0 ? k : 1; k < n; ++k) carryInto<Acc, Op>(v[k - 1], v + k, 1);
}

template <class Acc, class Op>
void scanBlock(Acc* v, std::int64_t n) {
  if (n <= 64) return scanPlain<Acc, Op>(v, n);
  const std::int64_t left = (n + 127) / 128 * 64;
  scanBlock<Acc, Op>(v, left);
  scanBlock<Acc, Op>(v + left, n - left);
  carryInto<Acc, Op>(v[left - 1], v + left, n - left);
}

template <class Acc, class Op>
void scan(void* values, std::int64_t n) {
  Acc* v = static_cast<Acc*>(values);
  if constexpr (Op::kRounds && std::is_floating_point_v<Acc>) {
    for (std::int64_t begin = 0; begin < n; begin += kPairwiseBlock) {
      const std::int64_t size = std::min(n - begin, kPairwiseBlock);
      scanBlock<Acc, Op>(v + begin, size);
      if (begin > 0) carryInto<Acc, Op>(v[begin - 1], v + begin, size);
    }
  } else {
    scanPlain<Acc, Op>(v, n);
  }
}

template <class In, class Op>
Loops loopsOf(ElementType acc) {
  using Acc = typename Input<In>::Acc;
  Loops loops;
  loops.acc = acc;
  const Acc identity = Op::template identity<Acc>;
  std::memcpy(&loops.identity, &identity, sizeof identity);
  loops.row = row<In, Op>;
  loops.rows = rows<In, Op>;
  loops.column = column<In, Op>;
  loops.accumulate = accumulate<In, Op>;
  loops.merge = merge<Acc, Op>;
  loops.scan = scan<Acc, Op>;
  return loops;
}

LoopTable makeTable() {
  LoopTable table;
  makeReducers([&]<class In, class Op>(Reducer reducer, ElementType type) {
    Loops& loops = table.loops[static_cast<int>(reducer)][static_cast<int>(type)];
    loops = loopsOf<In, Op>(type == ElementType::kHalf ? ElementType::kFloat : type);
    if (type == ElementType::kBool) loops.identity &= 1;
  });
  return table;
}

}  // namespace

const LoopTable& loopTable() {
  static const LoopTable table = makeTable();
  return table;
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::reduction
