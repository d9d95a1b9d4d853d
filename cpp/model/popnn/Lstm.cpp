#include "popnn/Lstm.hpp"

#include "popnn/internal/Lstm.hpp"
#include "popops/Zero.hpp"

namespace popnn::lstm {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;
using poplin::PlanningCache;

const std::vector<BasicLstmCellUnit> getDefaultBasicLstmCellOrder() {
  return {BASIC_LSTM_CELL_FORGET_GATE, BASIC_LSTM_CELL_INPUT_GATE, BASIC_LSTM_CELL_CANDIDATE,
          BASIC_LSTM_CELL_OUTPUT_GATE};
}

LstmParams::LstmParams(poplar::Type dataType, std::size_t batchSize, std::size_t timeSteps,
                       std::vector<std::size_t> layerSizes, NonLinearityType activation,
                       NonLinearityType recurrentActivation)
    : LstmParams(dataType, batchSize, timeSteps, Tensor(), std::move(layerSizes), activation,
                 recurrentActivation) {}

LstmParams::LstmParams(poplar::Type dataType, std::size_t batchSize, std::size_t maxTimeSteps,
                       const Tensor& timeSteps, std::vector<std::size_t> layerSizes,
                       NonLinearityType activation, NonLinearityType recurrentActivation)
    : rnn(dataType, batchSize, maxTimeSteps, timeSteps, layerSizes),
      dataType(dataType),
      batchSize(batchSize),
      timeSteps(maxTimeSteps),
      layerSizes(std::move(layerSizes)),
      activation(activation),
      recurrentActivation(recurrentActivation) {}

Tensor LstmState::getAsTensor() const {
  return poplar::concat(output.expand({0}), cellState.expand({0}));
}

std::vector<std::pair<poplin::MatMulParams, OptionFlags>> getMatMulPrePlanParameters(
    LstmParams params, OptionFlags opts) {
  const internal::RecurrentOptions options(opts, "lstm");
  const Sizes s(params);
  const poplar::Type type = params.rnn.dataType;
  const std::size_t in = s.I + s.O;
  return {{{type, type, {1, s.B, in}, {1, in, 4 * s.O}}, options.matmul},
          {{type, type, {1, s.B, 4 * s.O}, {1, 4 * s.O, in}}, options.matmul},
          {{type, type, {1, in, s.T * s.B}, {1, s.T * s.B, 4 * s.O}}, options.matmul}};
}

std::uint64_t getBasicLstmCellFwdFlops(const LstmParams& params) {
  const Sizes s(params);
  const std::size_t in = s.O + (params.doInputWeightCalc ? s.I : 0);
  return s.T * s.B * s.O * (8 * in + 4);  // products; 3 multiplications and an addition
}
std::uint64_t getBasicLstmCellBwdFlops(const LstmParams& params) {
  const Sizes s(params);
  const std::size_t in = s.O + (params.calcInputGradients ? s.I : 0);
  return s.T * s.B * s.O * (8 * in + 8);  // products; 6 multiplications and 2 additions
}
std::uint64_t getBasicLstmCellWuFlops(const LstmParams& params) {
  const Sizes s(params);
  return s.T * s.B * s.O * (8 * (s.I + s.O) + 4);
}

Tensor createInput(Graph& graph, const LstmParams& params, const DebugContext& debugContext,
                   const OptionFlags& options, PlanningCache*) {
  const internal::RecurrentOptions checked(options, "lstm");
  return rnn::createInputTensor(graph, params.rnn, 1, debugContext);
}

Tensor createInitialOutput(Graph& graph, const LstmParams& params, const DebugContext& debugContext,
                           const OptionFlags& options, PlanningCache*) {
  const internal::RecurrentOptions checked(options, "lstm");
  return rnn::createInitialState(graph, params.rnn, true, 1, 1, {debugContext, "output"})[0];
}
Tensor createInitialCellState(Graph& graph, const LstmParams& params,
                              const DebugContext& debugContext, const OptionFlags& options,
                              PlanningCache*) {
  const internal::RecurrentOptions checked(options, "lstm");
  return rnn::createInitialState(graph, params.rnn, true, 1, 1, {debugContext, "cellState"})[0];
}
LstmState createInitialState(Graph& graph, const LstmParams& params,
                             const DebugContext& debugContext, const OptionFlags& options,
                             PlanningCache* cache) {
  return {createInitialOutput(graph, params, debugContext, options, cache),
          createInitialCellState(graph, params, debugContext, options, cache)};
}

void zeroInitialState(Graph& graph, const LstmState& initialState, Sequence& prog,
                      const DebugContext& debugContext) {
  popops::zero(graph, initialState.output, prog, {debugContext, "output"});
  popops::zero(graph, initialState.cellState, prog, {debugContext, "cellState"});
}

std::pair<Tensor, Tensor> createWeightsKernel(Graph& graph, const LstmParams& params,
                                              const DebugContext& debugContext,
                                              const OptionFlags& options, PlanningCache* cache) {
  const internal::RecurrentOptions parsed(options, "lstm");
  const Sizes s(params);
  orderOf(params);  // throws if the cell order is invalid
  const auto matrix = [&](std::size_t rows, std::size_t in, const char* name) {
    return internal::createMatrix(graph, params.rnn.dataType, rows, in, 4 * s.O,
                                  {debugContext, name}, parsed.matmul, cache);
  };
  if (parsed.preCalcWeights && params.doInputWeightCalc)
    return {internal::asUnits(matrix(s.T * s.B, s.I, "inputWeights"), 4),
            internal::asUnits(matrix(s.B, s.O, "outputWeights"), 4)};
  const Tensor both = matrix(s.B, s.I + s.O, "weights");
  return {internal::asUnits(both.slice(0, s.I), 4),
          internal::asUnits(both.slice(s.I, s.I + s.O), 4)};
}

Tensor createWeightsBiases(Graph& graph, const LstmParams& params, const DebugContext& debugContext,
                           const OptionFlags& options, PlanningCache*) {
  const internal::RecurrentOptions checked(options, "lstm");
  return graph.addVariable(params.rnn.dataType, {4, Sizes(params).O},
                           poplar::VariableMappingMethod::LINEAR, {debugContext, "biases"});
}

LstmWeights createWeights(Graph& graph, const LstmParams& params, const DebugContext& debugContext,
                          const OptionFlags& options, PlanningCache* cache) {
  const auto [input, output] = createWeightsKernel(graph, params, debugContext, options, cache);
  return {input, output, createWeightsBiases(graph, params, debugContext, options, cache)};
}

}  // namespace popnn::lstm
