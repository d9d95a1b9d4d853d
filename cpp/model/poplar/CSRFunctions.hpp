#pragma once
#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace poplar {

/// Floating-point exceptions and rounding. Source: Poplar API reference, CSRFunctions.hpp;
/// defaults: PopLibs include/popsys/CSRFunctions.hpp. On an IPU, arithmetic raises the exceptions.
/// The model checks each step's inputs and outputs: if a step writes a NaN or an infinity that no
/// input holds, the run ends with application_runtime_error, which names the step. Exceptions
/// within a step go unnoticed.
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

/// Sets how steps added to the graph from now on round to half. An IPU changes its tiles when
/// `prog` reaches this point; the model assumes that steps run in the order in which they are
/// added. Vertices round as set when they are added, and raise the exceptions set when the graph is
/// compiled. Before the first call, halves round to nearest even and overflow to infinity, and no
/// exception ends a run.
void setFloatingPointBehaviour(Graph& graph, program::Sequence& prog,
                               const FloatingPointBehaviour& behaviour,
                               const DebugContext& debugContext = {});
/// Takes the behaviour from a tensor that getAndModifyFloatingPointBehaviour returned: UNSIGNED_INT
/// [tiles], on the model a constant of this graph, with the bits of Target::makeFpIctlValue. Throws
/// poplar_error for other tensors.
void setFloatingPointBehaviour(Graph& graph, program::Sequence& prog, const Tensor& behaviour,
                               const DebugContext& debugContext = {});
/// Clears the flags set in `clear`, then sets those in `set`; returns the previous flags.
Tensor getAndModifyFloatingPointBehaviour(Graph& graph, program::Sequence& prog,
                                          const FloatingPointBehaviour& clear,
                                          const FloatingPointBehaviour& set,
                                          const DebugContext& debugContext = {});
void setStochasticRounding(Graph& graph, program::Sequence& prog, bool enable,
                           const DebugContext& debugContext = {});

}  // namespace poplar
