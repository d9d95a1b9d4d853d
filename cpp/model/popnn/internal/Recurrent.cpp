#include "popnn/internal/Recurrent.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "poplar/exceptions.hpp"
#include "poplar/internal/NearName.hpp"
#include "poplin/MatMul.hpp"
#include "popnn/NonLinearity.hpp"
#include "popnn/internal/Fused.hpp"
#include "popops/ElementWise.hpp"
#include "poputil/exceptions.hpp"

namespace popnn::internal {

using poplar::Tensor;
namespace pe = popops::expr;

RecurrentOptions::RecurrentOptions(const poplar::OptionFlags& options, const char* layer) {
  constexpr std::array<std::string_view, 12> names{"partialsType",
                                                   "availableMemoryProportion",
                                                   "preCalcWeights",
                                                   "inferenceOnly",
                                                   "weightAccumulatorsType",
                                                   "recomputationMode",
                                                   "numShards",
                                                   "rnnCodeReuse",
                                                   "codeReuse",
                                                   "rnnStepsPerWU",
                                                   "rnnOptimizeForMemory",
                                                   "doFirstStepOutside"};
  constexpr std::size_t with_effect = 3;
  for (const auto& [name, value] : options) {
    if (name == "partialsType" || name == "availableMemoryProportion") {
      matmul.set(name, value);
      halfPartials |= name == "partialsType" && value == "half";
    } else if (name == "preCalcWeights" && (value == "true" || value == "false")) {
      preCalcWeights = value == "true";
    } else {
      if (std::find(names.begin() + with_effect, names.end(), name) != names.end()) continue;
      throw poplar::invalid_option("[popnn::" + std::string(layer) + "] got " + name + "=" + value +
                                   ". " + poplar::internal::didYouMean(name, names) +
                                   "Known options are partialsType, availableMemoryProportion, "
                                   "preCalcWeights (true, false), inferenceOnly, "
                                   "weightAccumulatorsType, recomputationMode, numShards.");
    }
  }
}

pe::Any activated(NonLinearityType type, const pe::Any& x) {
  switch (type) {
    case NonLinearityType::SIGMOID:
      return pe::Any(pe::Sigmoid(x));
    case NonLinearityType::TANH:
      return pe::Any(pe::Tanh(x));
    case NonLinearityType::RELU:
      return pe::Any(pe::Relu(x));
    default:
      return pe::Any(
          pe::Clamp(x * pe::Const(0.2f) + pe::Const(0.5f), pe::Const(0.0f), pe::Const(1.0f)));
  }
}

pe::Any slopeTimes(NonLinearityType type, const pe::Any& result, const pe::Any& grad) {
  const pe::Const one(1.0f), zero(0.0f);
  switch (type) {
    case NonLinearityType::SIGMOID:
      return pe::Any(grad * result * (one - result));
    case NonLinearityType::TANH:
      return pe::Any(grad * (one - result * result));
    case NonLinearityType::RELU:
      return pe::Any(pe::Select(grad, zero, result > zero));
    default:
      return pe::Any(pe::Select(grad * pe::Const(0.2f), zero, result > zero && result < one));
  }
}

Tensor gradientFromResult(poplar::Graph& graph, NonLinearityType type, const Tensor& result,
                          const Tensor& grad, poplar::program::Sequence& prog,
                          const poplar::DebugContext& debugContext) {
  if (type != NonLinearityType::HARD_SIGMOID)
    return nonLinearityInputGradient(graph, type, result, grad, prog, debugContext);
  const pe::Any slope = slopeTimes(type, pe::Any(pe::_1), pe::Any(pe::_2));
  return popops::map(graph, slope, {result, grad}, prog, debugContext);
}

int kernelActivation(NonLinearityType type) {
  switch (type) {
    case NonLinearityType::SIGMOID:
      return 0;
    case NonLinearityType::HARD_SIGMOID:
      return 1;
    case NonLinearityType::RELU:
      return 2;
    case NonLinearityType::TANH:
      return 3;
    default:
      return -1;
  }
}

bool hasKernel(const poplar::Graph& graph, const rnn::RnnParams& params,
               const RecurrentOptions& options, NonLinearityType activation,
               NonLinearityType recurrentActivation) {
  if (params.variableTimeSteps()) {
    const poplar::Type type = params.varTimeSteps.elementType();
    if (type != poplar::UNSIGNED_INT && type != poplar::INT) return false;
  }
  return params.dataType == poplar::FLOAT && !options.halfPartials && mayFuse(graph) &&
         kernelActivation(activation) >= 0 && kernelActivation(recurrentActivation) >= 0;
}

Tensor ordered(const Tensor& biases, const std::vector<unsigned>& order) {
  bool as_given = true;  // then the view stays one that vertices can read
  for (unsigned i = 0; i < order.size(); ++i) as_given &= order[i] == i;
  if (as_given) return biases;
  std::vector<Tensor> units;
  for (const unsigned at : order) units.push_back(biases.slice(at, at + 1));
  return poplar::concat(units);
}

Tensor unordered(const Tensor& units, const std::vector<unsigned>& order) {
  std::vector<unsigned> inverse(order.size());
  for (unsigned i = 0; i < order.size(); ++i) inverse[order[i]] = i;
  return ordered(units, inverse);
}

Tensor asMatrix(const Tensor& weights) {
  return weights.dimShuffle({1, 0, 2}).reshapePartial(1, 3, {weights.dim(0) * weights.dim(2)});
}

Tensor asUnits(const Tensor& matrix, std::size_t units) {
  return matrix.reshapePartial(1, 2, {units, matrix.dim(1) / units}).dimShuffle({1, 0, 2});
}

Tensor asMatrix(const Tensor& weights, const std::vector<unsigned>& order) {
  return ordered(weights, order)
      .dimShuffle({1, 0, 2})
      .reshapePartial(1, 3, {weights.dim(0) * weights.dim(2)});
}

Tensor asUnits(const Tensor& matrix, const std::vector<unsigned>& order) {
  const std::size_t units = order.size();
  return unordered(
      matrix.reshapePartial(1, 2, {units, matrix.dim(1) / units}).dimShuffle({1, 0, 2}), order);
}

std::vector<unsigned> positions(const std::vector<unsigned>& cellOrder, unsigned units,
                                const char* layer) {
  std::vector<unsigned> at(units, units);
  for (unsigned i = 0; i < cellOrder.size() && cellOrder.size() == units; ++i)
    if (cellOrder[i] < units) at[cellOrder[i]] = i;
  for (const unsigned position : at)
    if (position == units)
      throw poputil::poplibs_error("[popnn::" + std::string(layer) + "] needs a cellOrder with " +
                                   "each of the " + std::to_string(units) +
                                   " units once; got another. Start from the default order.");
  return at;
}

void checkGradient(NonLinearityType type, const char* layer) {
  if (type == NonLinearityType::SIGMOID || type == NonLinearityType::HARD_SIGMOID ||
      type == NonLinearityType::RELU || type == NonLinearityType::TANH ||
      type == NonLinearityType::SOFTMAX || type == NonLinearityType::SOFTMAX_STABLE)
    return;
  throw poputil::poplibs_error("[popnn::" + std::string(layer) +
                               "] needs activations whose gradients follow from their "
                               "results: SIGMOID, HARD_SIGMOID, RELU, TANH, SOFTMAX or "
                               "SOFTMAX_STABLE; got type " +
                               std::to_string(static_cast<int>(type)) +
                               ". Use another for inference only.");
}

Tensor zerosLike(poplar::Graph& graph, const Tensor& t, const poplar::DebugContext& debugContext) {
  const Tensor zero = graph.addConstant(t.elementType(), {1}, 0.0f, {debugContext, "zero"});
  graph.setTileMapping(zero, 0);
  return zero.broadcast(static_cast<unsigned>(t.numElements()), 0).reshape(t.shape());
}

Tensor createMatrix(poplar::Graph& graph, const poplar::Type& type, std::size_t rows,
                    std::size_t in, std::size_t columns, const poplar::DebugContext& debugContext,
                    const poplar::OptionFlags& options, poplin::PlanningCache* cache) {
  return poplin::createMatMulInputRHS(graph, type, {rows, in}, {in, columns}, debugContext, options,
                                      cache);
}

}  // namespace popnn::internal
