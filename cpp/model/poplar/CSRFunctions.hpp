#pragma once
#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace poplar {

/// Source: Poplar API reference, CSRFunctions.hpp; what holds by default: PopLibs
/// include/popsys/CSRFunctions.hpp. An IPU raises exceptions from its arithmetic.
/// The model looks at what each step reads and writes: a NaN or an infinity that no operand brought
/// ends the run by application_runtime_error, which names the step. What passes inside of a step is
/// not seen.
struct FloatingPointBehaviour {
  FloatingPointBehaviour(bool inv, bool div0, bool oflo, bool esr, bool nanoo)
      : inv(inv), div0(div0), oflo(oflo), esr(esr), nanoo(nanoo) {}
  FloatingPointBehaviour() = default;

  bool inv = true;    ///< exception on an invalid operation
  bool div0 = true;   ///< exception on a division by zero
  bool oflo = true;   ///< exception on an overflow
  bool esr = true;    ///< stochastic rounding of halves
  bool nanoo = true;  ///< halves overflow to NaN; otherwise they saturate
};

/// Sets how steps added to the graph from now on round to half. On an IPU the tiles change over
/// when `prog` gets there; the model takes the order in which steps are added for the order in
/// which they run; vertices round as set when they are added, and raise what is set when the graph
/// is compiled. Until the first call halves round to nearest even and overflow to infinity, and
/// nothing ends a run.
void setFloatingPointBehaviour(Graph& graph, program::Sequence& prog,
                               const FloatingPointBehaviour& behaviour,
                               const DebugContext& debugContext = {});
/// As a tensor says it that getAndModifyFloatingPointBehaviour gave: UNSIGNED_INT [tiles], on the
/// model a constant of this graph, with the bits of Target::makeFpIctlValue. Throws poplar_error
/// for other tensors.
void setFloatingPointBehaviour(Graph& graph, program::Sequence& prog, const Tensor& behaviour,
                               const DebugContext& debugContext = {});
/// Clears what `clear` has, then sets what `set` has; gives what was there before.
Tensor getAndModifyFloatingPointBehaviour(Graph& graph, program::Sequence& prog,
                                          const FloatingPointBehaviour& clear,
                                          const FloatingPointBehaviour& set,
                                          const DebugContext& debugContext = {});
void setStochasticRounding(Graph& graph, program::Sequence& prog, bool enable,
                           const DebugContext& debugContext = {});

}  // namespace poplar
