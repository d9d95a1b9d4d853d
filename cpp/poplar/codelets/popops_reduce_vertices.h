// The reductions of contiguous elements of popops that programs name in Graph::addVertex, which
// loads them for the first. Source of fields and results: PopLibs, lib/popops/codelets.
#include <poplar/codelets/reducers.h>
#include <poplar/codelets/vertex_loops.h>

#include <limits>

namespace popops {

using namespace ipujax_vertices;

/// A reduction's operation, and what it begins with.
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

/// Each of the outputs is that of the next numPartials elements; with kUpdates it is added
/// to them. Sums of halves are kept in float.
template <class Reduce, class PartialsType, class OutType, bool kUpdates>
class ContinuousReduce : public poplar::Vertex {
 public:
  static constexpr bool kSums = Reduce::op == Operation::ADD || Reduce::op == Operation::SQUARE_ADD;
  using Kept = std::conditional_t<std::is_same_v<PartialsType, half> && kSums, float, PartialsType>;
  poplar::Input<Pointer<PartialsType>> partials;
  std::conditional_t<kUpdates, poplar::InOut<Pointer<OutType>>, poplar::Output<Pointer<OutType>>>
      out;
  unsigned numOutputsM1;
  unsigned numPartials;

  bool compute() {
    for (unsigned o = 0; o <= numOutputsM1; ++o) {
      Kept kept = Reduce::template first<Kept>();
      for (unsigned p = 0; p < numPartials; ++p)
        kept = reduced<Reduce::op, Kept>(kept, static_cast<Kept>(partials[o * numPartials + p]));
      out[o] = kUpdates ? updated(out[o], static_cast<OutType>(kept)) : static_cast<OutType>(kept);
    }
    return true;
  }

 private:
  static OutType updated(OutType before, OutType now) {
    constexpr Operation op = std::is_same_v<OutType, bool>      ? Operation::LOGICAL_OR
                             : Reduce::op == Operation::LOG_ADD ? Operation::LOG_ADD
                                                                : Operation::ADD;
    return reduced<op, OutType>(before, now);
  }
};

}  // namespace popops
