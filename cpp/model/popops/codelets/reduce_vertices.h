// popops' reductions. Graph::addVertex loads them when a program first names one. Source of fields
// and results: PopLibs, lib/popops/codelets.
#include <popops/codelets/reducers.h>
#include <poplar/codelets/vertex_loops.h>

#include <limits>

namespace popops {

using namespace ipujax_vertices;

/// A reduction's operation and its initial value.
template <Operation kOperation>
struct ReduceOp {
  static constexpr Operation op = kOperation;

  template <class T>
  static T first() {
    if constexpr (op == Operation::MUL || op == Operation::LOGICAL_AND) return static_cast<T>(1);
    if constexpr (op == Operation::MAX) return lowest<T>();
    if constexpr (op == Operation::MIN) return highest<T>();
    if constexpr (op == Operation::LOG_ADD) return lowest<T>();
    return static_cast<T>(0);
  }

 private:
  template <class T>
  static T lowest() {
    if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::min();
    return static_cast<T>(-std::numeric_limits<float>::infinity());
  }
  template <class T>
  static T highest() {
    if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::max();
    return static_cast<T>(std::numeric_limits<float>::infinity());
  }
};
using ReduceAdd = ReduceOp<Operation::ADD>;
using ReduceSquareAdd = ReduceOp<Operation::SQUARE_ADD>;
using ReduceLogAdd = ReduceOp<Operation::LOG_ADD>;
using ReduceMul = ReduceOp<Operation::MUL>;
using ReduceMax = ReduceOp<Operation::MAX>;
using ReduceMin = ReduceOp<Operation::MIN>;
using ReduceAnd = ReduceOp<Operation::LOGICAL_AND>;
using ReduceOr = ReduceOp<Operation::LOGICAL_OR>;

/// Which fields a Reduce has.
enum ReductionSpecialisation : unsigned {
  DEFAULT,
  SCALAR_OUTPUT_REGIONS,
  SCALAR_OUTPUT_SINGLE_INPUT,
  STRIDED_REDUCE,
  STRIDED_REDUCE_OUTER,
};

/// `k`: the factor of a reduction's results; LOG_ADD adds it to them.
template <bool kScales, class = void>
struct ScaledVertex : poplar::Vertex {
  poplar::Input<Pointer<float>> k;

  template <Operation op, class T>
  T scaled(T result) const {
    const auto scale = static_cast<T>(k[0]);
    return op == Operation::LOG_ADD ? reduced<Operation::ADD, T>(result, scale)
                                    : reduced<Operation::MUL, T>(result, scale);
  }
};
template <class V>
struct ScaledVertex<false, V> : poplar::Vertex {
  template <Operation, class T>
  T scaled(T result) const {
    return result;
  }
};

/// With kUpdates results are added to the outputs. Sums of halves are kept in float.
template <class Reducer, class PartialsType, class OutType, bool kUpdates, bool kScales>
struct Reduction : ScaledVertex<kScales> {
  static constexpr bool kSums =
      Reducer::op == Operation::ADD || Reducer::op == Operation::SQUARE_ADD;
  using Kept = std::conditional_t<std::is_same_v<PartialsType, half> && kSums, float, PartialsType>;
  template <class T>
  using Results = std::conditional_t<kUpdates, poplar::InOut<T>, poplar::Output<T>>;

  /// Sets `out` to the reduction of the values for which `partials(take)` calls take(partial).
  template <class Partials>
  void reduceTo(OutType& out, const Partials& partials) const {
    Kept kept = Reducer::template first<Kept>();
    partials([&kept](PartialsType partial) {
      kept = reduced<Reducer::op, Kept>(kept, static_cast<Kept>(partial));
    });
    const auto result = static_cast<OutType>(this->template scaled<Reducer::op, Kept>(kept));
    out = kUpdates ? updated(out, result) : result;
  }

 private:
  static OutType updated(OutType before, OutType now) {
    constexpr Operation op = std::is_same_v<OutType, bool>       ? Operation::LOGICAL_OR
                             : Reducer::op == Operation::LOG_ADD ? Operation::LOG_ADD
                                                                 : Operation::ADD;
    return reduced<op, OutType>(before, now);
  }
};

/// Each output reduces the next numPartials elements.
template <class Reducer, class PartialsType, class OutType, bool kUpdates, bool kScales>
struct Contiguous : Reduction<Reducer, PartialsType, OutType, kUpdates, kScales> {
  using Base = Reduction<Reducer, PartialsType, OutType, kUpdates, kScales>;
  poplar::Input<Pointer<PartialsType>> partials;
  typename Base::template Results<Pointer<OutType>> out;
  unsigned numOutputsM1;
  unsigned numPartials;

  bool compute() {
    return ofAll(numOutputsM1 + 1, [&](unsigned o) {
      this->reduceTo(out[o], [&](const auto& take) {
        for (unsigned p = 0; p < numPartials; ++p) take(partials[o * numPartials + p]);
      });
    });
  }
};
template <class Reducer, class PartialsType, class OutType, bool kUpdates>
class ContinuousReduce : public Contiguous<Reducer, PartialsType, OutType, kUpdates, false> {};
template <class Reducer, class PartialsType, class OutType, bool kUpdates>
class ScaledContinuousReduce : public Contiguous<Reducer, PartialsType, OutType, kUpdates, true> {};

/// outCount groups of outputs, each as many as partials in 128 bits; each row of partials repeats
/// them partialsSizeM1 + 1 times.
template <class Reducer, class PartialsType, class OutType, bool kUpdates, bool kScales>
struct EqualSizes : Reduction<Reducer, PartialsType, OutType, kUpdates, kScales> {
  using Base = Reduction<Reducer, PartialsType, OutType, kUpdates, kScales>;
  typename Base::template Results<Pointer<OutType>> out;
  unsigned outCount;
  poplar::Vector<poplar::Input<Span<PartialsType>>> partials;
  unsigned partialsSizeM1;

  bool compute() {
    const unsigned outputs = outCount * (std::is_same_v<PartialsType, half> ? 8 : 4);
    return ofAll(outputs, [&](unsigned o) {
      this->reduceTo(out[o], [&](const auto& take) {
        for (unsigned row = 0; row < partials.size(); ++row) {
          for (unsigned p = 0; p <= partialsSizeM1; ++p) take(partials[row][p * outputs + o]);
        }
      });
    });
  }
};
template <class Reducer, class PartialsType, class OutType, bool kUpdates>
class ReducePartialsEqualSize : public EqualSizes<Reducer, PartialsType, OutType, kUpdates, false> {
};
template <class Reducer, class PartialsType, class OutType, bool kUpdates>
class ScaledReducePartialsEqualSize
    : public EqualSizes<Reducer, PartialsType, OutType, kUpdates, true> {};

/// Each row of outputs reduces the next numPartials rows of partials, whose sizes are multiples of
/// its own.
template <class Reducer, class PartialsType, class OutType, bool kUpdates, bool kScales,
          unsigned kSpecialisation>
struct Reducing : Reduction<Reducer, PartialsType, OutType, kUpdates, kScales> {
  static_assert(kSpecialisation <= STRIDED_REDUCE_OUTER, "no such popops::ReductionSpecialisation");
  using Base = Reduction<Reducer, PartialsType, OutType, kUpdates, kScales>;
  poplar::Vector<typename Base::template Results<Span<OutType>>> out;
  poplar::Input<Pointer<unsigned short>> numPartials;
  poplar::Vector<poplar::Input<Span<PartialsType>>> partials;

  bool compute() {
    for (unsigned row = 0, first = 0; row < out.size(); first += numPartials[row++]) {
      ofAll(out[row].size(), [&](unsigned o) {
        this->reduceTo(out[row][o], [&](const auto& take) {
          for (unsigned p = first; p < first + numPartials[row]; ++p) {
            for (unsigned i = o; i < partials[p].size(); i += out[row].size()) take(partials[p][i]);
          }
        });
      });
    }
    return true;
  }
};

/// One output reduces all partials.
template <class Reducer, class PartialsType, class OutType, bool kUpdates, bool kScales>
struct Reducing<Reducer, PartialsType, OutType, kUpdates, kScales, SCALAR_OUTPUT_SINGLE_INPUT>
    : Reduction<Reducer, PartialsType, OutType, kUpdates, kScales> {
  using Base = Reduction<Reducer, PartialsType, OutType, kUpdates, kScales>;
  typename Base::template Results<Pointer<OutType>> out;
  poplar::Input<Pointer<PartialsType>> partials;
  unsigned numPartials;

  bool compute() {
    this->reduceTo(out[0], [&](const auto& take) {
      for (unsigned p = 0; p < numPartials; ++p) take(partials[p]);
    });
    return true;
  }
};

/// Each output reduces a column of the rows of partials. countsAndStrides: the number of output
/// blocks minus one, of rows minus one, of blocks per row, of repetitions of these rows minus one,
/// and of blocks from a repetition's last row to the next one's first. A block has 64 bits of
/// partials.
template <class Reducer, class PartialsType, class OutType, bool kUpdates, bool kScales>
struct Strided : Reduction<Reducer, PartialsType, OutType, kUpdates, kScales> {
  using Base = Reduction<Reducer, PartialsType, OutType, kUpdates, kScales>;
  poplar::Input<Pointer<unsigned>> countsAndStrides;
  typename Base::template Results<Pointer<OutType>> out;
  poplar::Input<Pointer<PartialsType>> partials;

  bool compute() {
    constexpr unsigned kGrain = std::is_same_v<PartialsType, half> ? 4 : 2;
    const unsigned outputs = (countsAndStrides[0] + 1) * kGrain;
    const unsigned rows = countsAndStrides[1] + 1, repetitions = countsAndStrides[3] + 1;
    const unsigned width = countsAndStrides[2] * kGrain;
    const unsigned outer = countsAndStrides[4] * kGrain;
    return ofAll(outputs, [&](unsigned o) {
      this->reduceTo(out[o], [&](const auto& take) {
        unsigned i = o;
        for (unsigned r = 0; r < repetitions; ++r) {
          for (unsigned row = 0; row < rows; ++row, i += width) take(partials[i]);
          if (outer != 0) i += outer - width;
        }
      });
    });
  }
};
template <class Reducer, class PartialsType, class OutType, bool kUpdates, bool kScales>
struct Reducing<Reducer, PartialsType, OutType, kUpdates, kScales, STRIDED_REDUCE>
    : Strided<Reducer, PartialsType, OutType, kUpdates, kScales> {};
template <class Reducer, class PartialsType, class OutType, bool kUpdates, bool kScales>
struct Reducing<Reducer, PartialsType, OutType, kUpdates, kScales, STRIDED_REDUCE_OUTER>
    : Strided<Reducer, PartialsType, OutType, kUpdates, kScales> {};

template <class Reducer, class PartialsType, class OutType, bool kUpdates, unsigned kSpecialisation>
class Reduce : public Reducing<Reducer, PartialsType, OutType, kUpdates, false, kSpecialisation> {};
template <class Reducer, class PartialsType, class OutType, bool kUpdates, unsigned kSpecialisation>
class ScaledReduce
    : public Reducing<Reducer, PartialsType, OutType, kUpdates, true, kSpecialisation> {};

}  // namespace popops
