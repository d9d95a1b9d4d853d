#include "poplar/CSRFunctions.hpp"

#include <algorithm>
#include <vector>

#include "engine/graph/GraphImpl.hpp"

namespace poplar {

void setFloatingPointBehaviour(Graph& graph, program::Sequence&,
                               const FloatingPointBehaviour& behaviour, const DebugContext&) {
  using Overflow = ipujax::engine::HalfBehaviour::Overflow;
  // With oflo set, an overflow must end the program; the model detects it by the infinity.
  const Overflow overflow = behaviour.oflo    ? Overflow::kInfinity
                            : behaviour.nanoo ? Overflow::kNan
                                              : Overflow::kSaturate;
  graph.impl().half = {behaviour.esr, overflow};
  graph.impl().traps = {behaviour.inv, behaviour.div0, behaviour.oflo};
}

namespace {

/// The flags as bits of FP_ICTL.
unsigned bitsOf(const Target& target, const FloatingPointBehaviour& b) {
  return target.makeFpIctlValue(b.inv, b.div0, b.oflo, b.esr, b.nanoo);
}

FloatingPointBehaviour behaviourOf(const Target& target, unsigned bits) {
  const auto has = [&](bool inv, bool div0, bool oflo, bool esr, bool nanoo) {
    return (bits & target.makeFpIctlValue(inv, div0, oflo, esr, nanoo)) != 0;
  };
  return {has(true, false, false, false, false), has(false, true, false, false, false),
          has(false, false, true, false, false), has(false, false, false, true, false),
          has(false, false, false, false, true)};
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
  std::vector<unsigned> bits(behaviour.numElements());
  const bool is_known = behaviour.elementType() == UNSIGNED_INT && !bits.empty() &&
                        graph.getConstantValue(behaviour, bits.data());
  const Target& target = graph.getTarget();
  if (!is_known || std::ranges::any_of(bits, [&](unsigned b) { return b != bits[0]; }) ||
      (bits[0] & ~target.makeFpIctlValue(true, true, true, true, true)) != 0)
    throw poplar_error(
        "[setFloatingPointBehaviour] needs a tensor of getAndModifyFloatingPointBehaviour; got " +
        behaviour.elementType().toString() + " " + behaviour.shapeToString() +
        ". Use that one, or a FloatingPointBehaviour.");
  setFloatingPointBehaviour(graph, prog, behaviourOf(target, bits[0]), debugContext);
}

Tensor getAndModifyFloatingPointBehaviour(Graph& graph, program::Sequence& prog,
                                          const FloatingPointBehaviour& clear,
                                          const FloatingPointBehaviour& set,
                                          const DebugContext& debugContext) {
  const Target& target = graph.getTarget();
  const unsigned before = bitsOf(target, present(graph));
  const unsigned after = (before & ~bitsOf(target, clear)) | bitsOf(target, set);
  setFloatingPointBehaviour(graph, prog, behaviourOf(target, after), debugContext);
  const Tensor saved = graph.addConstant(UNSIGNED_INT, {1}, before, debugContext);
  graph.setTileMapping(saved, 0);
  return saved.broadcast(target.getNumTiles(), 0);
}

void setStochasticRounding(Graph& graph, program::Sequence&, bool enable, const DebugContext&) {
  graph.impl().half.stochastic = enable;
}

}  // namespace poplar
