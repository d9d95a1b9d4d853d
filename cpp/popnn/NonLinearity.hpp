#pragma once
#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "popnn/NonLinearityDef.hpp"

namespace popnn {

/// The non-linearity of every element, with the cycles of popnn's own vertices. The softmax types
/// throw: they are reductions, and the compiler composes them from popops.
poplar::Tensor nonLinearity(poplar::Graph& graph, NonLinearityType type, poplar::Tensor t,
                            poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext = {},
                            const poplar::OptionFlags& options = {});
void nonLinearityInPlace(poplar::Graph& graph, NonLinearityType type, poplar::Tensor t,
                         poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext = {},
                         const poplar::OptionFlags& options = {});

/// The gradient with respect to the input. `act` is the output for SIGMOID, HARD_SIGMOID, RELU and
/// TANH, and the input for GELU, GELU_ERF and SWISH.
poplar::Tensor nonLinearityInputGradient(poplar::Graph& graph, NonLinearityType type,
                                         poplar::Tensor act, poplar::Tensor outGradient,
                                         poplar::program::Sequence& prog,
                                         const poplar::DebugContext& debugContext = {},
                                         const poplar::OptionFlags& options = {});

#define IPUJAX_POPNN(fn, TYPE)                                                                     \
  inline poplar::Tensor fn(poplar::Graph& graph, poplar::Tensor t,                                 \
                           poplar::program::Sequence& prog,                                        \
                           const poplar::DebugContext& debugContext = {}) {                        \
    return nonLinearity(graph, NonLinearityType::TYPE, t, prog, debugContext);                     \
  }                                                                                                \
  inline void fn##InPlace(poplar::Graph& graph, poplar::Tensor t, poplar::program::Sequence& prog, \
                          const poplar::DebugContext& debugContext = {}) {                         \
    nonLinearityInPlace(graph, NonLinearityType::TYPE, t, prog, debugContext);                     \
  }
IPUJAX_POPNN(sigmoid, SIGMOID)
IPUJAX_POPNN(relu, RELU)
IPUJAX_POPNN(tanh, TANH)
IPUJAX_POPNN(gelu, GELU)
#undef IPUJAX_POPNN

}  // namespace popnn
