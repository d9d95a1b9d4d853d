#include "poplar/CSRFunctions.hpp"

#include "engine/graph/GraphImpl.hpp"
#include "poplar/exceptions.hpp"

namespace poplar {

void setFloatingPointBehaviour(Graph& graph, program::Sequence&,
                               const FloatingPointBehaviour& behaviour, const DebugContext&) {
  if (behaviour.inv || behaviour.div0 || behaviour.oflo)
    throw poplar_error(
        "[setFloatingPointBehaviour] needs inv, div0 and oflo to be false on the IPU Model, whose "
        "arithmetic raises nothing; got true. Compare results with isFinite instead.");
  using Overflow = ipujax::engine::HalfBehaviour::Overflow;
  graph.impl().half = {behaviour.esr, behaviour.nanoo ? Overflow::kNan : Overflow::kSaturate};
}

void setStochasticRounding(Graph& graph, program::Sequence&, bool enable, const DebugContext&) {
  graph.impl().half.stochastic = enable;
}

}  // namespace poplar
