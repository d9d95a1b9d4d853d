#pragma once
#include "popnn/NonLinearityDef.hpp"

// Codelets include this only for the type, so that they can use the functions' names.
#ifndef __POPC__
#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"

namespace popnn {

/// The non-linearity of every element of FLOAT or HALF, with the cycles of popnn's own vertices.
/// The softmax types normalise over the last dimension, with popops' reductions and maps:
/// SOFTMAX as exp(x) / sum(exp(x)), SOFTMAX_STABLE with the maximum subtracted from x first, and
/// SOFTMAX_SCALED as SOFTMAX_STABLE times 16384, to keep small probabilities from underflow in
/// HALF. nonLinearityScaling becomes this factor, or 1 for the other types.
///
/// A compute set given instead of a program runs the steps together with its vertices. Options have
/// no effect.
poplar::Tensor nonLinearity(poplar::Graph& graph, NonLinearityType type, poplar::Tensor t,
                            poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext = {},
                            const poplar::OptionFlags& options = {});
poplar::Tensor nonLinearity(poplar::Graph& graph, NonLinearityType type, poplar::Tensor t,
                            float& nonLinearityScaling, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext = {},
                            const poplar::OptionFlags& options = {});
void nonLinearityInPlace(poplar::Graph& graph, NonLinearityType type, poplar::Tensor t,
                         poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext = {},
                         const poplar::OptionFlags& options = {});
void nonLinearityInPlace(poplar::Graph& graph, NonLinearityType type, poplar::Tensor t,
                         float& nonLinearityScaling, poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext = {},
                         const poplar::OptionFlags& options = {});
void nonLinearityInPlace(poplar::Graph& graph, NonLinearityType type, poplar::Tensor t,
                         poplar::ComputeSet& cs, const poplar::DebugContext& debugContext = {},
                         const poplar::OptionFlags& options = {});
void nonLinearityInPlace(poplar::Graph& graph, NonLinearityType type, poplar::Tensor t,
                         float& nonLinearityScaling, poplar::ComputeSet& cs,
                         const poplar::DebugContext& debugContext = {},
                         const poplar::OptionFlags& options = {});

/// The gradient with respect to the input. `act` is the output for SIGMOID, RELU, TANH and the
/// softmax types, and the input for HARD_SIGMOID, GELU, GELU_ERF and SWISH. The gradient of
/// SOFTMAX_SCALED is that of SOFTMAX, as in PopLibs: `act` must not contain the factor.
poplar::Tensor nonLinearityInputGradient(poplar::Graph& graph, NonLinearityType type,
                                         poplar::Tensor act, poplar::Tensor outGradient,
                                         poplar::program::Sequence& prog,
                                         const poplar::DebugContext& debugContext = {},
                                         const poplar::OptionFlags& options = {});
poplar::Tensor nonLinearityInputGradient(poplar::Graph& graph, NonLinearityType type,
                                         poplar::Tensor act, poplar::Tensor outGradient,
                                         poplar::ComputeSet& cs,
                                         const poplar::DebugContext& debugContext = {},
                                         const poplar::OptionFlags& options = {});

#define IPUJAX_POPNN(fn, TYPE)                                                                     \
  inline poplar::Tensor fn(poplar::Graph& graph, poplar::Tensor t,                                 \
                           poplar::program::Sequence& prog,                                        \
                           const poplar::DebugContext& debugContext = {}) {                        \
    return nonLinearity(graph, NonLinearityType::TYPE, t, prog, debugContext);                     \
  }                                                                                                \
  inline poplar::Tensor fn(poplar::Graph& graph, poplar::Tensor t, float& nonLinearityScaling,     \
                           poplar::program::Sequence& prog,                                        \
                           const poplar::DebugContext& debugContext = {}) {                        \
    return nonLinearity(graph, NonLinearityType::TYPE, t, nonLinearityScaling, prog,               \
                        debugContext);                                                             \
  }                                                                                                \
  inline void fn##InPlace(poplar::Graph& graph, poplar::Tensor t, poplar::program::Sequence& prog, \
                          const poplar::DebugContext& debugContext = {}) {                         \
    nonLinearityInPlace(graph, NonLinearityType::TYPE, t, prog, debugContext);                     \
  }                                                                                                \
  inline void fn##InPlace(poplar::Graph& graph, poplar::Tensor t, float& nonLinearityScaling,      \
                          poplar::program::Sequence& prog,                                         \
                          const poplar::DebugContext& debugContext = {}) {                         \
    nonLinearityInPlace(graph, NonLinearityType::TYPE, t, nonLinearityScaling, prog,               \
                        debugContext);                                                             \
  }
IPUJAX_POPNN(sigmoid, SIGMOID)
IPUJAX_POPNN(relu, RELU)
IPUJAX_POPNN(tanh, TANH)
IPUJAX_POPNN(gelu, GELU)
IPUJAX_POPNN(softmax, SOFTMAX)
IPUJAX_POPNN(softmaxStable, SOFTMAX_STABLE)
IPUJAX_POPNN(scaledSoftmaxStable, SOFTMAX_SCALED)
#undef IPUJAX_POPNN

}  // namespace popnn
#endif
