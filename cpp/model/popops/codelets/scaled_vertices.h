// The vertices of popops::scaledAddTo and similar functions. Graph::addVertex loads them when a
// program first names one. Source of fields, results and cycles: PopLibs, lib/popops/codelets.
#include <poplar/codelets/vertex_loops.h>

namespace popops {

using namespace ipujax_vertices;

namespace scaled {

/// The type in which a sum of products is computed: that of its widest operand.
template <class A, class B, class S>
using Computed = std::conditional_t<
    std::is_same_v<A, float> || std::is_same_v<B, float> || std::is_same_v<S, float>, float, A>;

/// A scale: a field with a number if the first of two flags is set, else a tensor, which is a
/// scalar for vertices of rows and a vector of one element for the others.
template <class S, bool kIsConstant>
struct Scale {
  using Field = S;
  using FieldOfRows = S;
  static S of(const Field& field) { return field; }
};
template <class S>
struct Scale<S, false> {
  using Field = poplar::Input<Pointer<S>>;
  using FieldOfRows = poplar::Input<S>;
  static S of(const Field& field) { return field[0]; }
  static S of(const FieldOfRows& field) { return *field; }
};

/// PopLibs' flags are isConstant and memConstraints or, in later versions, the second alone.
template <bool... kFlags>
constexpr bool is_constant = false;
template <bool kIsConstant, bool kConstraints>
constexpr bool is_constant<kIsConstant, kConstraints> = kIsConstant;

template <class S, bool... kFlags>
using ScaleOf = Scale<S, is_constant<kFlags...>>;

/// True for vertices of halves whose FLOAT scale is a tensor.
template <class A, class B, class S, bool... kFlags>
constexpr bool has_tolerance =
    std::conjunction_v<std::is_same<A, half>, std::is_same<B, half>, std::is_same<S, float>> &&
    !is_constant<kFlags...>;

/// a + sign * scale * b.
template <int kSign, class A, class B, class S>
A added(A a, B b, S scale) {
  using C = Computed<A, B, S>;
  const C product = static_cast<C>(static_cast<C>(scale) * static_cast<C>(b));
  return static_cast<A>(kSign > 0 ? static_cast<C>(a) + product : static_cast<C>(a) - product);
}

/// scale_a * a + sign * scale_b * b.
template <int kSign, class T, class S>
T mixed(T a, S scale_a, T b, S scale_b) {
  using C = Computed<T, T, S>;
  return added<kSign, C, T, S>(static_cast<C>(static_cast<C>(scale_a) * static_cast<C>(a)), b,
                               scale_b);
}

/// Cycles of one worker, for rows.
template <class T, class List>
std::uint64_t rowsOf(const List& rows) {
  if (std::is_integral<T>::value) return rowCycles(rows, 8, 7, Rate{5, 1});
  return rowCycles(rows, 10, 15 + 5, Rate{3, sizeof(T) == 2 ? 4u : 2u});
}

/// Cycles of a supervisor and six workers.
template <class T>
std::uint64_t sixOf(unsigned n) {
  return whole(ipujax::engine::expr::scaledAddCycles(elementOf<T>(), n, kWorkers));
}

}  // namespace scaled

/// `tolerance`: the error of a FLOAT scale as a half up to which PopLibs computes with the half.
/// Here products use the FLOAT, which is at least as accurate.
template <bool kHasTolerance, class = void>
struct ScaledWorkers : poplar::MultiVertex {
  const float tolerance;
};
template <class V>
struct ScaledWorkers<false, V> : poplar::MultiVertex {};

template <bool kHasTolerance, class = void>
struct ScaledRows : poplar::Vertex {
  const float tolerance;
};
template <class V>
struct ScaledRows<false, V> : poplar::Vertex {};

/// A += kSign * scaleB * B.
template <int kSign, class AType, class BType, class ScaleType, bool... kFlags>
struct Scaled1D : ScaledWorkers<scaled::has_tolerance<AType, BType, ScaleType, kFlags...>> {
  using Scale = scaled::ScaleOf<ScaleType, kFlags...>;
  poplar::InOut<Pointer<AType>> A;
  poplar::Input<Pointer<BType>> B;
  typename Scale::Field scaleB;
  unsigned short size;

  bool compute(unsigned worker) {
    const ScaleType scale = Scale::of(scaleB);
    return ofWorker(worker, size, [&](unsigned i) {
      A[i] = scaled::added<kSign, AType, BType, ScaleType>(A[i], B[i], scale);
    });
  }
  std::uint64_t getCycleEstimate() const { return scaled::sixOf<AType>(size); }
};

template <int kSign, class AType, class BType, class ScaleType, bool... kFlags>
struct Scaled2D : ScaledRows<scaled::has_tolerance<AType, BType, ScaleType, kFlags...>> {
  using Scale = scaled::ScaleOf<ScaleType, kFlags...>;
  InOutRows<AType> A;
  InputRows<BType> B;
  typename Scale::FieldOfRows scaleB;

  bool compute() {
    const ScaleType scale = Scale::of(scaleB);
    return ofRows(A, [&](unsigned i, unsigned j) {
      A[i][j] = scaled::added<kSign, AType, BType, ScaleType>(A[i][j], B[i][j], scale);
    });
  }
  std::uint64_t getCycleEstimate() const { return scaled::rowsOf<AType>(A); }
};

template <class A, class B, class S, bool... kFlags>
class ScaledAddSupervisor : public Scaled1D<1, A, B, S, kFlags...> {};
template <class A, class B, class S, bool... kFlags>
class ScaledAdd2D : public Scaled2D<1, A, B, S, kFlags...> {};
template <class A, class B, class S, bool... kFlags>
class ScaledSubtractSupervisor : public Scaled1D<-1, A, B, S, kFlags...> {};
template <class T, class S, bool... kFlags>
class ScaledSubtract2D : public Scaled2D<-1, T, T, S, kFlags...> {};

/// A = scaleA * A + kSign * scaleB * B.
template <int kSign, class T, class ScaleType, bool... kFlags>
struct Mixed1D : ScaledWorkers<scaled::has_tolerance<T, T, ScaleType, kFlags...>> {
  using Scale = scaled::ScaleOf<ScaleType, kFlags...>;
  poplar::InOut<Pointer<T>> A;
  poplar::Input<Pointer<T>> B;
  typename Scale::Field scaleA;
  unsigned short size;
  typename Scale::Field scaleB;

  bool compute(unsigned worker) {
    const ScaleType a = Scale::of(scaleA), b = Scale::of(scaleB);
    return ofWorker(worker, size, [&](unsigned i) {
      A[i] = scaled::mixed<kSign, T, ScaleType>(A[i], a, B[i], b);
    });
  }
  std::uint64_t getCycleEstimate() const { return scaled::sixOf<T>(size); }
};

template <int kSign, class T, class ScaleType, bool... kFlags>
struct Mixed2D : ScaledRows<scaled::has_tolerance<T, T, ScaleType, kFlags...>> {
  using Scale = scaled::ScaleOf<ScaleType, kFlags...>;
  InOutRows<T> A;
  InputRows<T> B;
  typename Scale::FieldOfRows scaleA;
  typename Scale::FieldOfRows scaleB;

  bool compute() {
    const ScaleType a = Scale::of(scaleA), b = Scale::of(scaleB);
    return ofRows(A, [&](unsigned i, unsigned j) {
      A[i][j] = scaled::mixed<kSign, T, ScaleType>(A[i][j], a, B[i][j], b);
    });
  }
  std::uint64_t getCycleEstimate() const { return scaled::rowsOf<T>(A); }
};

template <class T, class S, bool... kFlags>
class aXPlusbYSupervisor : public Mixed1D<1, T, S, kFlags...> {};
template <class T, class S, bool... kFlags>
class aXPlusbY2D : public Mixed2D<1, T, S, kFlags...> {};
template <class T, class S, bool... kFlags>
class aXMinusbYSupervisor : public Mixed1D<-1, T, S, kFlags...> {};
template <class T, class S, bool... kFlags>
class aXMinusbY2D : public Mixed2D<-1, T, S, kFlags...> {};

/// A = A - scaleA * A + scaleB * B.
template <class T, class S>
T interpolated(T a, S scale_a, T b, S scale_b) {
  return scaled::added<1, T, T, S>(scaled::added<-1, T, T, S>(a, a, scale_a), b, scale_b);
}

template <class T, bool... kFlags>
class XMinusaXPlusbYSupervisor : public poplar::MultiVertex {
 public:
  using Scale = scaled::ScaleOf<T, kFlags...>;
  poplar::InOut<Pointer<T>> A;
  poplar::Input<Pointer<T>> B;
  typename Scale::Field scaleA;
  unsigned short size;
  typename Scale::Field scaleB;

  bool compute(unsigned worker) {
    const T a = Scale::of(scaleA), b = Scale::of(scaleB);
    return ofWorker(worker, size, [&](unsigned i) { A[i] = interpolated(A[i], a, B[i], b); });
  }
  std::uint64_t getCycleEstimate() const { return scaled::sixOf<T>(size); }
};

template <class T, bool... kFlags>
class XMinusaXPlusbY2D : public poplar::Vertex {
 public:
  using Scale = scaled::ScaleOf<T, kFlags...>;
  InOutRows<T> A;
  InputRows<T> B;
  typename Scale::FieldOfRows scaleA;
  typename Scale::FieldOfRows scaleB;

  bool compute() {
    const T a = Scale::of(scaleA), b = Scale::of(scaleB);
    return ofRows(A,
                  [&](unsigned i, unsigned j) { A[i][j] = interpolated(A[i][j], a, B[i][j], b); });
  }
  std::uint64_t getCycleEstimate() const { return scaled::rowsOf<T>(A); }
};

/// A *= B.
template <class T>
class HadamardProd : public poplar::Vertex {
 public:
  InOutRows<T> A;
  InputRows<T> B;

  bool compute() {
    return ofRows(A, [&](unsigned i, unsigned j) { A[i][j] = static_cast<T>(A[i][j] * B[i][j]); });
  }
  std::uint64_t getCycleEstimate() const { return scaled::rowsOf<T>(A); }
};

}  // namespace popops
