#include "popnn/NonLinearity.hpp"

#include <cmath>
#include <string>

#include "engine/graph/Planning.hpp"
#include "poplar/codelets/nonlinearity_cycles.h"
#include "popnn/internal/Softmax.hpp"
#include "popops/internal/ElementWiseCost.hpp"
#include "popops/internal/Map.hpp"
#include "poputil/exceptions.hpp"

namespace popnn {

namespace {
namespace pe = popops::expr;
using pe::_1;
using pe::_2;
using pe::Const;
using pe::Expr;
using poplar::Tensor;

[[noreturn]] void noSuchType(NonLinearityType type) {
  throw poputil::poplibs_error("[popnn::nonLinearity] needs a NonLinearityType; got " +
                               std::to_string(static_cast<int>(type)) +
                               ". Use one of the enumeration's names.");
}

/// The tanh form of GELU: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
Expr geluArgument(const Expr& x) {
  return Const(0.7978845608f) * (x + Const(0.044715f) * x * x * x);
}

Expr forward(NonLinearityType type) {
  switch (type) {
    case NonLinearityType::SIGMOID:
      return pe::Sigmoid(_1);
    case NonLinearityType::HARD_SIGMOID:
      return pe::Clamp(_1 * Const(0.2f) + Const(0.5f), Const(0.0f), Const(1.0f));
    case NonLinearityType::RELU:
      return pe::Relu(_1);
    case NonLinearityType::TANH:
      return pe::Tanh(_1);
    case NonLinearityType::GELU:
      return Const(0.5f) * _1 * (Const(1.0f) + pe::Tanh(geluArgument(_1)));
    case NonLinearityType::GELU_ERF:
      return pe::GeluErf(_1);
    case NonLinearityType::SWISH:
      return _1 * pe::Sigmoid(_1);
    default:
      noSuchType(type);
  }
}

Expr gradient(NonLinearityType type) {
  const Expr& act = _1;
  const Expr& grad = _2;
  const Const one(1.0f);
  switch (type) {
    case NonLinearityType::SIGMOID:
      return grad * act * (one - act);
    case NonLinearityType::HARD_SIGMOID:
      return pe::Select(grad * Const(0.2f), Const(0.0f), act > 0.0f && act < 1.0f);
    case NonLinearityType::RELU:
      return pe::Select(grad, Const(0.0f), act > 0.0f);
    case NonLinearityType::TANH:
      return grad * (one - act * act);
    case NonLinearityType::GELU: {
      const Expr t = pe::Tanh(geluArgument(act));
      const Expr slope = Const(0.7978845608f) * (one + Const(3 * 0.044715f) * act * act);
      return grad * (Const(0.5f) * (one + t) + Const(0.5f) * act * (one - t * t) * slope);
    }
    case NonLinearityType::GELU_ERF: {
      const Expr cdf = Const(0.5f) * (one + pe::Erf(act * Const(0.70710678f)));
      return grad * (cdf + act * Const(0.39894228f) * pe::Exp(Const(-0.5f) * act * act));
    }
    case NonLinearityType::SWISH: {
      const Expr s = pe::Sigmoid(act);
      return grad * (s + act * s * (one - s));
    }
    default:
      noSuchType(type);
  }
}

auto cycles(const poplar::Graph& graph, NonLinearityType type, const Tensor& t, bool backward) {
  return [=, half = t.elementType() == poplar::HALF,
          workers = graph.getTarget().getNumWorkerContexts()](std::uint64_t n) {
    return nonlinearity::vertexCycles(type, half, backward, workers, n);
  };
}

constexpr float kSoftmaxScaling = 16384;

bool isSoftmax(NonLinearityType type) {
  return type >= NonLinearityType::SOFTMAX && type <= NonLinearityType::SOFTMAX_SCALED;
}

float scalingOf(NonLinearityType type) {
  return type == NonLinearityType::SOFTMAX_SCALED ? kSoftmaxScaling : 1;
}

/// Adds a program's steps to a compute set.
template <class Add>
void addTo(poplar::ComputeSet& cs, const poplar::DebugContext& debugContext, const Add& add) {
  poplar::program::Sequence steps(debugContext);
  add(steps);
  cs.steps()->children.push_back(steps.node());
}
}  // namespace

Tensor nonLinearity(poplar::Graph& graph, NonLinearityType type, Tensor t,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                    const poplar::OptionFlags&) {
  const Tensor out = graph.clone(t, debugContext);
  if (isSoftmax(type)) {
    prog.add(poplar::program::Copy(t, out, false, debugContext));
    nonLinearityInPlace(graph, type, out, prog, debugContext);
  } else {
    popops::internal::mapWithOutputs(graph, {forward(type)}, {t}, {out}, prog, debugContext,
                                     cycles(graph, type, t, false));
  }
  return out;
}

Tensor nonLinearity(poplar::Graph& graph, NonLinearityType type, Tensor t,
                    float& nonLinearityScaling, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  nonLinearityScaling = scalingOf(type);
  return nonLinearity(graph, type, t, prog, debugContext, options);
}

void nonLinearityInPlace(poplar::Graph& graph, NonLinearityType type, Tensor t,
                         poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                         const poplar::OptionFlags&) {
  if (isSoftmax(type)) {
    internal::softmaxInPlace(graph, t, type != NonLinearityType::SOFTMAX, scalingOf(type), prog,
                             debugContext);
  } else {
    popops::internal::mapWithOutputs(graph, {forward(type)}, {t}, {t}, prog, debugContext,
                                     cycles(graph, type, t, false));
  }
}

void nonLinearityInPlace(poplar::Graph& graph, NonLinearityType type, Tensor t,
                         float& nonLinearityScaling, poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext,
                         const poplar::OptionFlags& options) {
  nonLinearityScaling = scalingOf(type);
  nonLinearityInPlace(graph, type, t, prog, debugContext, options);
}

void nonLinearityInPlace(poplar::Graph& graph, NonLinearityType type, Tensor t,
                         poplar::ComputeSet& cs, const poplar::DebugContext& debugContext,
                         const poplar::OptionFlags& options) {
  addTo(cs, debugContext, [&](poplar::program::Sequence& steps) {
    nonLinearityInPlace(graph, type, t, steps, debugContext, options);
  });
}

void nonLinearityInPlace(poplar::Graph& graph, NonLinearityType type, Tensor t,
                         float& nonLinearityScaling, poplar::ComputeSet& cs,
                         const poplar::DebugContext& debugContext,
                         const poplar::OptionFlags& options) {
  nonLinearityScaling = scalingOf(type);
  nonLinearityInPlace(graph, type, t, cs, debugContext, options);
}

Tensor nonLinearityInputGradient(poplar::Graph& graph, NonLinearityType type, Tensor act,
                                 Tensor outGradient, poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext,
                                 const poplar::OptionFlags&) {
  if (isSoftmax(type))
    return internal::softmaxGradient(graph, act, outGradient, prog, debugContext);
  const Expr expression = gradient(type);
  const Tensor out = graph.clone(outGradient, debugContext);
  popops::internal::mapWithOutputs(graph, {expression}, {act, outGradient}, {out}, prog,
                                   debugContext, cycles(graph, type, act, true));
  return out;
}

Tensor nonLinearityInputGradient(poplar::Graph& graph, NonLinearityType type, Tensor act,
                                 Tensor outGradient, poplar::ComputeSet& cs,
                                 const poplar::DebugContext& debugContext,
                                 const poplar::OptionFlags& options) {
  Tensor result;
  addTo(cs, debugContext, [&](poplar::program::Sequence& steps) {
    result = nonLinearityInputGradient(graph, type, act, outGradient, steps, debugContext, options);
  });
  return result;
}

}  // namespace popnn
