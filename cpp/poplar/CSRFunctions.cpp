#include "poplar/CSRFunctions.hpp"

#include "engine/graph/GraphImpl.hpp"

namespace poplar {

void setFloatingPointBehaviour(Graph& graph, program::Sequence&,
                               const FloatingPointBehaviour& behaviour, const DebugContext&) {
  using Overflow = ipujax::engine::HalfBehaviour::Overflow;
  // A half that overflows ends the program where oflo is set; its infinity is how that is seen.
  const Overflow overflow = behaviour.oflo    ? Overflow::kInfinity
                            : behaviour.nanoo ? Overflow::kNan
                                              : Overflow::kSaturate;
  graph.impl().half = {behaviour.esr, overflow};
  graph.impl().traps = {behaviour.inv, behaviour.div0, behaviour.oflo};
}

void setStochasticRounding(Graph& graph, program::Sequence&, bool enable, const DebugContext&) {
  graph.impl().half.stochastic = enable;
}

}  // namespace poplar
