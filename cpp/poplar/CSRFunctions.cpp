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

namespace {

constexpr unsigned kBits = 5;

unsigned bitsOf(const FloatingPointBehaviour& b) {
  return unsigned{b.inv} | unsigned{b.div0} << 1 | unsigned{b.oflo} << 2 | unsigned{b.esr} << 3 |
         unsigned{b.nanoo} << 4;
}

FloatingPointBehaviour behaviourOf(unsigned bits) {
  const auto has = [&](unsigned i) { return (bits >> i & 1) != 0; };
  return {has(0), has(1), has(2), has(3), has(4)};
}

FloatingPointBehaviour present(const Graph& graph) {
  const auto& traps = graph.impl().traps;
  const auto& half = graph.impl().half;
  return {traps.invalid, traps.divide_by_zero, traps.overflow, half.stochastic,
          half.overflow == ipujax::engine::HalfBehaviour::Overflow::kNan};
}

}  // namespace

void setFloatingPointBehaviour(Graph& graph, program::Sequence& prog, const Tensor& behaviour,
                               const DebugContext& debugContext) {
  unsigned bits = ~0u;
  if (behaviour.elementType() != UNSIGNED_INT || behaviour.numElements() != 1 ||
      !graph.getConstantValue(behaviour, &bits) || bits >> kBits != 0)
    throw poplar_error(
        "[setFloatingPointBehaviour] needs a tensor of getAndModifyFloatingPointBehaviour; got " +
        behaviour.elementType().toString() + " " + behaviour.shapeToString() +
        ". Use that one, or a FloatingPointBehaviour.");
  setFloatingPointBehaviour(graph, prog, behaviourOf(bits), debugContext);
}

Tensor getAndModifyFloatingPointBehaviour(Graph& graph, program::Sequence& prog,
                                          const FloatingPointBehaviour& clear,
                                          const FloatingPointBehaviour& set,
                                          const DebugContext& debugContext) {
  const unsigned before = bitsOf(present(graph));
  setFloatingPointBehaviour(graph, prog, behaviourOf((before & ~bitsOf(clear)) | bitsOf(set)),
                            debugContext);
  const Tensor saved = graph.addConstant(UNSIGNED_INT, {1}, before, debugContext);
  graph.setTileMapping(saved, 0);
  return saved[0];
}

void setStochasticRounding(Graph& graph, program::Sequence&, bool enable, const DebugContext&) {
  graph.impl().half.stochastic = enable;
}

}  // namespace poplar
