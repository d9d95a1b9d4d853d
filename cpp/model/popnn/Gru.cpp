#include "popnn/Gru.hpp"

#include "popnn/internal/Gru.hpp"

namespace popnn::gru {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplin::PlanningCache;

const std::vector<BasicGruCellUnit> getDefaultBasicGruCellOrder() {
  return {BASIC_GRU_CELL_RESET_GATE, BASIC_GRU_CELL_UPDATE_GATE, BASIC_GRU_CELL_CANDIDATE};
}

GruParams::GruParams(poplar::Type dataType, std::size_t batchSize, std::size_t timeSteps,
                     std::vector<std::size_t> layerSizes, NonLinearityType activation,
                     NonLinearityType recurrentActivation)
    : GruParams(dataType, batchSize, timeSteps, Tensor(), std::move(layerSizes), activation,
                recurrentActivation) {}

GruParams::GruParams(poplar::Type dataType, std::size_t batchSize, std::size_t maxTimeSteps,
                     const Tensor& timeSteps, std::vector<std::size_t> layerSizes,
                     NonLinearityType activation, NonLinearityType recurrentActivation)
    : rnn(dataType, batchSize, maxTimeSteps, timeSteps, layerSizes),
      dataType(dataType),
      batchSize(batchSize),
      timeSteps(maxTimeSteps),
      layerSizes(std::move(layerSizes)),
      activation(activation),
      recurrentActivation(recurrentActivation) {}

GruParams::GruParams(const GruParams& other) = default;

std::uint64_t getBasicGruCellFwdFlops(const GruParams& params) {
  const Sizes s(params);
  return s.T * s.B * s.O * (6 * (s.I + s.O) + 5);  // products; 3 multiplications, 2 additions
}
std::uint64_t getBasicGruCellBwdFlops(const GruParams& params) {
  const Sizes s(params);
  const std::size_t in = s.O + (params.calcInputGradients ? s.I : 0);
  return s.T * s.B * s.O * (6 * in + 10);
}
std::uint64_t getBasicGruCellWuFlops(const GruParams& params) {
  const Sizes s(params);
  return s.T * s.B * s.O * (6 * (s.I + s.O) + 3);
}

Tensor createInput(Graph& graph, const GruParams& params, const DebugContext& debugContext,
                   const OptionFlags& options, PlanningCache*) {
  const internal::RecurrentOptions checked(options, "gru");
  return rnn::createInputTensor(graph, params.rnn, 1, debugContext);
}
Tensor createInitialState(Graph& graph, const GruParams& params, const DebugContext& debugContext,
                          const OptionFlags& options, PlanningCache*) {
  const internal::RecurrentOptions checked(options, "gru");
  return rnn::createInitialState(graph, params.rnn, true, 1, 1, debugContext)[0];
}

std::pair<Tensor, Tensor> createWeightsKernel(Graph& graph, const GruParams& params,
                                              const DebugContext& debugContext,
                                              const OptionFlags& options, PlanningCache* cache) {
  const internal::RecurrentOptions parsed(options, "gru");
  const Sizes s(params);
  const auto order = orderOf(params);
  const auto matrix = [&](std::size_t rows, std::size_t in, const char* name) {
    return internal::createMatrix(graph, params.rnn.dataType, rows, in, 3 * s.O,
                                  {debugContext, name}, parsed.matmul, cache);
  };
  if (parsed.preCalcWeights)
    return {internal::asUnits(matrix(s.T * s.B, s.I, "inputWeights"), order),
            internal::asUnits(matrix(s.B, s.O, "outputWeights"), order)};
  const Tensor both = matrix(s.B, s.I + s.O, "weights");
  return {internal::asUnits(both.slice(0, s.I), order),
          internal::asUnits(both.slice(s.I, s.I + s.O), order)};
}
Tensor createWeightsBiases(Graph& graph, const GruParams& params, const DebugContext& debugContext,
                           const OptionFlags& options, PlanningCache*) {
  const internal::RecurrentOptions checked(options, "gru");
  std::vector<std::size_t> shape{3, Sizes(params).O};
  if (params.resetAfter) shape.insert(shape.begin() + 1, 2);
  return graph.addVariable(params.rnn.dataType, shape, poplar::VariableMappingMethod::LINEAR,
                           {debugContext, "biases"});
}
GruWeights createWeights(Graph& graph, const GruParams& params, const DebugContext& debugContext,
                         const OptionFlags& options, PlanningCache* cache) {
  const auto [input, output] = createWeightsKernel(graph, params, debugContext, options, cache);
  return {input, output, createWeightsBiases(graph, params, debugContext, options, cache)};
}

Tensor createAttention(Graph& graph, const GruParams& params, const DebugContext& debugContext,
                       const OptionFlags& options) {
  const internal::RecurrentOptions checked(options, "gru");
  return graph.addVariable(params.rnn.dataType, {params.rnn.batchSize, params.rnn.maxTimeSteps},
                           poplar::VariableMappingMethod::LINEAR, {debugContext, "attention"});
}

}  // namespace popnn::gru
