#include "popnn/NonLinearity.hpp"

#include <cmath>
#include <string>

#include "engine/graph/Planning.hpp"
#include "popnn/codelets/nonlinearity_cycles.h"
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

/// The factor of x in the tanh form of GELU, x / 2 (1 + tanh(u)) with u = sqrt(2 / pi)
/// (x + 0.044715 x^3), as sigmoid(2 u), which keeps its digits where the tanh is near -1.
Expr geluShare(const Expr& x) {
  return pe::Sigmoid(Const(2 * 0.7978845608f) * (x + Const(0.044715f) * x * x * x));
}

/// `x` is the argument in the type of the computation.
Expr forward(NonLinearityType type, const Expr& x) {
  switch (type) {
    case NonLinearityType::SIGMOID:
      return pe::Sigmoid(x);
    case NonLinearityType::HARD_SIGMOID:
      return pe::Clamp(x * Const(0.2f) + Const(0.5f), Const(0.0f), Const(1.0f));
    case NonLinearityType::RELU:
      return pe::Relu(x);
    case NonLinearityType::TANH:
      return pe::Tanh(x);
    case NonLinearityType::GELU:
      return x * geluShare(x);
    case NonLinearityType::GELU_ERF:
      return pe::GeluErf(x);
    case NonLinearityType::SWISH:
      return x * pe::Sigmoid(x);
    default:
      noSuchType(type);
  }
}

/// The gradient `grad` times the derivative at `act`, both in the type of the computation.
Expr gradient(NonLinearityType type, const Expr& act, const Expr& grad) {
  const Const one(1.0f);
  switch (type) {
    case NonLinearityType::SIGMOID:
      return grad * act * (one - act);
    case NonLinearityType::HARD_SIGMOID:
      return pe::Select(grad * Const(0.2f), Const(0.0f), pe::Abs(act) <= 2.5f);
    case NonLinearityType::RELU:
      return pe::Select(grad, Const(0.0f), act > 0.0f);
    case NonLinearityType::TANH:
      return grad * (one - act * act);
    case NonLinearityType::GELU: {
      const Expr share = geluShare(act);
      const Expr slope = Const(2 * 0.7978845608f) * (one + Const(3 * 0.044715f) * act * act);
      return grad * (share + act * share * (one - share) * slope);
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

/// PopLibs' vertices compute these in float and round once, even for HALF.
bool isOfFloats(NonLinearityType type) {
  return type == NonLinearityType::GELU || type == NonLinearityType::GELU_ERF ||
         type == NonLinearityType::SWISH;
}

Expr forward(NonLinearityType type, const poplar::Type& element) {
  if (element != poplar::HALF || !isOfFloats(type)) return forward(type, _1);
  return pe::Cast(forward(type, pe::Cast(_1, poplar::FLOAT)), poplar::HALF);
}

Expr gradient(NonLinearityType type, const poplar::Type& element) {
  if (element != poplar::HALF || !isOfFloats(type)) return gradient(type, _1, _2);
  return pe::Cast(gradient(type, pe::Cast(_1, poplar::FLOAT), pe::Cast(_2, poplar::FLOAT)),
                  poplar::HALF);
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
    popops::internal::mapWithOutputs(graph, {forward(type, t.elementType())}, {t}, {out}, prog,
                                     debugContext, cycles(graph, type, t, false));
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
    popops::internal::mapWithOutputs(graph, {forward(type, t.elementType())}, {t}, {t}, prog,
                                     debugContext, cycles(graph, type, t, false));
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
  const Expr expression = gradient(type, act.elementType());
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
