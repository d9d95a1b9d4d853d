#include <algorithm>
#include <cmath>
#include <popnn/Lstm.hpp>

#include "Check.hpp"
#include "Fixture.hpp"
#include "Gradients.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// An LSTM in double. `steps` has the length of each sequence. All values are in one vector, for
/// finite differences.
struct Lstm {
  std::size_t T, B, I, O;
  bool full;
  std::vector<BasicLstmCellUnit> order;
  std::vector<unsigned> steps;

  std::vector<std::size_t> sizes() const {  // x, h, c, W, U, b
    return {T * B * I, B * O, B * O, 4 * I * O, 4 * O * O, 4 * O};
  }
  std::size_t offset(std::size_t part) const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < part; ++i) sum += sizes()[i];
    return sum;
  }
  std::size_t unit(BasicLstmCellUnit wanted) const {
    return static_cast<std::size_t>(std::find(order.begin(), order.end(), wanted) - order.begin());
  }
  /// The outputs [T][B][O] (or of the last step), then the last cell state [B][O].
  Values run(const Values& v) const {
    const double *x = &v[offset(0)], *W = &v[offset(3)], *U = &v[offset(4)], *b = &v[offset(5)];
    Values h(&v[offset(1)], &v[offset(2)]), c(&v[offset(2)], &v[offset(3)]), found;
    for (std::size_t t = 0; t < T; ++t) {
      const Values before = h;
      for (std::size_t n = 0; n < B; ++n) {
        for (std::size_t o = 0; o < O; ++o) {
          const auto sum = [&](BasicLstmCellUnit which) {
            const std::size_t u = unit(which);
            double s = b[u * O + o];
            for (std::size_t i = 0; i < I; ++i)
              s += x[(t * B + n) * I + i] * W[(u * I + i) * O + o];
            for (std::size_t i = 0; i < O; ++i) s += before[n * O + i] * U[(u * O + i) * O + o];
            return s;
          };
          if (t < steps[n]) {
            double& cell = c[n * O + o];
            cell = sigmoid(sum(BASIC_LSTM_CELL_FORGET_GATE)) * cell +
                   sigmoid(sum(BASIC_LSTM_CELL_INPUT_GATE)) *
                       std::tanh(sum(BASIC_LSTM_CELL_CANDIDATE));
            h[n * O + o] = sigmoid(sum(BASIC_LSTM_CELL_OUTPUT_GATE)) * std::tanh(cell);
          }
          if (full) found.push_back(t < steps[n] ? h[n * O + o] : 0);
        }
      }
    }
    if (!full) found = h;
    found.insert(found.end(), c.begin(), c.end());
    return found;
  }
};

/// Checks one random layer, forward and backward, against finite differences.
void checkLayer(std::mt19937& random, int kind, const OptionFlags& options) {
  Lstm wanted{1 + random() % 3,
              1 + random() % 3,
              1 + random() % 3,
              1 + random() % 3,
              random() % 2 == 0,
              popnn::lstm::getDefaultBasicLstmCellOrder(),
              {}};
  if (random() % 2) std::swap(wanted.order[0], wanted.order[3]);
  const unsigned all = static_cast<unsigned>(random() % (wanted.T + 1));
  for (std::size_t n = 0; n < wanted.B; ++n)
    wanted.steps.push_back(kind == 0   ? static_cast<unsigned>(wanted.T)
                           : kind == 1 ? all
                                       : static_cast<unsigned>(random() % (wanted.T + 1)));
  Fixture f;
  Values v;
  std::vector<Tensor> parts;
  const auto [T, B, I, O] = std::tuple{wanted.T, wanted.B, wanted.I, wanted.O};
  const std::vector<std::vector<std::size_t>> shapes{{T, B, I}, {B, O},    {B, O},
                                                     {4, I, O}, {4, O, O}, {4, O}};
  for (const auto& shape : shapes) {
    std::size_t n = 1;
    for (const std::size_t d : shape) n *= d;
    const auto values = randomFloats(random, n);
    v.insert(v.end(), values.begin(), values.end());
    parts.push_back(f.constant<float>(shape, values));
  }
  const Tensor limits =
      kind == 1 ? f.constant<unsigned>({1}, {all}) : f.constant<unsigned>({B}, wanted.steps);
  popnn::lstm::LstmParams params(FLOAT, B, T, kind == 0 ? Tensor() : limits, {I, O});
  params.outputFullSequence = wanted.full;
  params.cellOrder = wanted.order;
  const popnn::lstm::LstmState state{parts[1], parts[2]};
  const popnn::lstm::LstmWeights weights{parts[3], parts[4], parts[5]};
  Tensor kept, inputGrad;
  const auto [output, cell] =
      popnn::lstm::lstmFwd(f.graph, params, state, parts[0], weights, &kept, f.prog, {}, options);
  const Tensor again =
      popnn::lstm::lstmFwd(f.graph, params, f.prog, state, weights, parts[0], nullptr, {}, options);
  const auto y = wanted.run(v);
  const auto slopes = randomFloats(random, y.size());
  const Tensor all_grads = f.constant<float>({y.size()}, slopes);
  const std::size_t n = output.numElements();
  const Tensor outputGrad = all_grads.slice(0, n).reshape(output.shape());
  const Tensor cellGrad = all_grads.slice(n, n + B * O).reshape({B, O});
  popnn::lstm::LstmWeights grads;
  const auto first =
      popnn::lstm::lstmBwdWithWU(f.graph, params, f.prog, state, kept, weights, parts[0], output,
                                 outputGrad, &cellGrad, &inputGrad, grads, {}, options);
  const auto found = f.run(flat({output, cell, again, inputGrad, first.output, first.cellState,
                                 grads.inputWeights, grads.outputWeights, grads.biases}));
  checkFrom(found, 0, y);
  checkFrom(found, y.size(), Values(y.begin(), y.begin() + static_cast<long>(n)));
  checkFrom(found, y.size() + n,
            differences([&](const Values& at) { return wanted.run(at); }, v,
                        {slopes.begin(), slopes.end()}));
}

}  // namespace

TEST(lstm_layers_and_their_gradients) {
  std::mt19937 random(1);
  for (int round = 0; round < 18; ++round)
    checkLayer(random, round % 3,
               round % 2 ? OptionFlags{{"preCalcWeights", "true"}, {"partialsType", "float"}}
                         : OptionFlags{});
}

TEST(lstm_tensors_and_figures) {
  Fixture f;
  popnn::lstm::LstmParams params(HALF, 2, 5, {3, 4}, popnn::NonLinearityType::RELU);
  CHECK_EQ(params.rnn.maxTimeSteps, 5u);
  CHECK(!params.rnn.variableTimeSteps());
  const auto weights = popnn::lstm::createWeights(f.graph, params, "weights");
  CHECK(weights.inputWeights.shape() == (std::vector<std::size_t>{4, 3, 4}));
  CHECK(weights.outputWeights.shape() == (std::vector<std::size_t>{4, 4, 4}));
  CHECK(weights.biases.shape() == (std::vector<std::size_t>{4, 4}));
  const Tensor in = popnn::lstm::createInput(f.graph, params, "in", {{"inferenceOnly", "true"}});
  CHECK(in.shape() == (std::vector<std::size_t>{5, 2, 3}) && in.elementType() == HALF);
  const auto state = popnn::lstm::createInitialState(f.graph, params, "state");
  CHECK(state.getAsTensor().shape() == (std::vector<std::size_t>{2, 2, 4}));
  popnn::lstm::zeroInitialState(f.graph, state, f.prog);
  CHECK_EQ(popnn::lstm::getBasicLstmCellFwdFlops(params), 5u * 2 * 4 * (8 * 7 + 4));
  params.doInputWeightCalc = false;
  CHECK_EQ(popnn::lstm::getBasicLstmCellFwdFlops(params), 5u * 2 * 4 * (8 * 4 + 4));
  CHECK(popnn::lstm::getBasicLstmCellBwdFlops(params) >
        popnn::lstm::getBasicLstmCellWuFlops(params));
  CHECK_EQ(popnn::lstm::getMatMulPrePlanParameters(params, {}).size(), 3u);
  CHECK_THROWS(popnn::lstm::createInput(f.graph, params, "in", {{"fast", "true"}}), "fast");
  params.cellOrder.pop_back();
  CHECK_THROWS(popnn::lstm::createWeights(f.graph, params, "weights"), "cellOrder");
  params.activation = popnn::NonLinearityType::GELU;
  CHECK_THROWS(popnn::lstm::lstmBwd(f.graph, params, f.prog, state, in, weights, in, in, in,
                                    nullptr, nullptr, nullptr),
               "SIGMOID");
  CHECK_THROWS(popnn::rnn::createInputTensor(f.graph, {FLOAT, 1, 1, {2, 3, 4}}, 1), "two layer");
}
