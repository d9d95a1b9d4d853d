#include <algorithm>
#include <cmath>
#include <popnn/Gru.hpp>
#include <popnn/Lstm.hpp>
#include <popnn/Recurrent.hpp>
#include <popnn/Rnn.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>

#include "Check.hpp"
#include "Fixture.hpp"
#include "Gradients.hpp"

using namespace poplar;
using namespace poplar::program;
namespace rnn = popnn::rnn;

namespace {

/// Vanilla layers in double: x, h, Wi, Wf, b in one vector; the outputs of all steps.
Values vanilla(const Values& v, std::size_t T, std::size_t B, std::size_t I, std::size_t O) {
  const double *x = v.data(), *h0 = x + T * B * I, *Wi = h0 + B * O, *Wf = Wi + O * I,
               *b = Wf + O * O;
  Values h(h0, Wi), found;
  for (std::size_t t = 0; t < T; ++t) {
    const Values before = h;
    for (std::size_t n = 0; n < B; ++n)
      for (std::size_t o = 0; o < O; ++o) {
        double sum = b[o];
        for (std::size_t i = 0; i < I; ++i) sum += x[(t * B + n) * I + i] * Wi[o * I + i];
        for (std::size_t i = 0; i < O; ++i) sum += before[n * O + i] * Wf[o * O + i];
        h[n * O + o] = std::tanh(sum);
      }
    found.insert(found.end(), h.begin(), h.end());
  }
  return found;
}

/// The states of the test's cell: the last one, those of all steps, the kept ones and the counters.
std::vector<Values> summed(const std::vector<float>& x, const std::vector<unsigned>& steps,
                           bool reverse, std::size_t T, std::size_t B, std::size_t O) {
  Values state(B * O, 0), sequence(T * B * O, 0), before(2 * T * B * O, 0);
  double counters = 0;
  for (std::size_t i = 0; i < T; ++i) {
    const std::size_t t = reverse ? T - 1 - i : i;
    if (t >= std::max(steps[0], steps[1])) continue;
    counters += static_cast<double>(t);
    for (std::size_t j = 0; j < B * O; ++j) {
      before[2 * t * B * O + j] = state[j];
      before[(2 * t + 1) * B * O + j] = x[t * B * O + j];
      if (t < steps[j / O]) sequence[t * B * O + j] = state[j] += x[t * B * O + j];
    }
  }
  return {state, sequence, before, {counters}};
}

}  // namespace

TEST(vanilla_layers_and_their_gradients) {
  std::mt19937 random(1);
  for (int round = 0; round < 8; ++round) {
    const std::size_t T = 1 + random() % 3, B = 1 + random() % 3, I = 1 + random() % 3,
                      O = 1 + random() % 3;
    Fixture f;
    Values v;
    std::vector<Tensor> t;
    for (const auto& shape :
         std::vector<std::vector<std::size_t>>{{T, B, I}, {B, O}, {O, I}, {O, O}, {O}}) {
      std::size_t n = 1;
      for (const std::size_t d : shape) n *= d;
      const auto values = randomFloats(random, n);
      v.insert(v.end(), values.begin(), values.end());
      t.push_back(f.constant<float>(shape, values));
    }
    const auto type = popnn::NonLinearityType::TANH;
    const Tensor weighted = rnn::forwardWeightInput(f.graph, t[0], t[2], f.prog);
    const Tensor out = rnn::rnnFwdSequence(f.graph, f.prog, t[1], round % 2 ? &weighted : nullptr,
                                           t[4], t[2], t[3], t[0], type, FLOAT, false);
    const auto slopes = randomFloats(random, T * B * O);
    const Tensor grad = f.constant<float>({T, B, O}, slopes);
    const auto [x, Wi, Wf, b] = rnn::rnnBwdSequence(f.graph, true, false, f.prog, t[1], out, t[4],
                                                    t[2], t[3], grad, t[0], type, FLOAT);
    const auto none = rnn::rnnBwdSequence(f.graph, false, true, f.prog, t[1], out, t[4], t[2], t[3],
                                          grad, t[0], type, FLOAT);
    CHECK(!std::get<0>(none).valid() && !std::get<3>(none).valid());
    // Only one step, the last.
    const Tensor zero = rnn::createBwdState(f.graph, FLOAT, static_cast<unsigned>(B),
                                            static_cast<unsigned>(O), f.prog);
    const auto last =
        rnn::backwardGradientStep(f.graph, grad[T - 1], zero, out[T - 1], t[2], t[3], f.prog, type);
    const auto found = f.run(flat({out, x, Wi, Wf, b, last.first, x[T - 1]}));
    const auto run = [&](const Values& at) { return vanilla(at, T, B, I, O); };
    checkFrom(found, 0, run(v));
    auto wanted = differences(run, v, {slopes.begin(), slopes.end()});
    const auto state = wanted.begin() + static_cast<long>(T * B * I);
    wanted.erase(state, state + static_cast<long>(B * O));  // no gradient of the initial state
    checkFrom(found, T * B * O, wanted);
    for (std::size_t i = 0; i < B * I; ++i)
      CHECK_NEAR(found[found.size() - 2 * B * I + i], found[found.size() - B * I + i], 1e-6);
  }
  CHECK_EQ(rnn::getFwdFlops(5, 2, 3, 4), 5u * 2 * 4 * 15);
  CHECK_EQ(rnn::getMatMulPrePlanParameters(5, 2, 3, 4, FLOAT).size(), 5u);
}

TEST(custom_cells_run_forwards_and_backwards) {
  // state' = state + input; out = 2 * state', kept = the state before.
  std::mt19937 random(2);
  for (int kind = 0; kind < 6; ++kind) {
    const bool reverse = kind & 1;
    const std::size_t T = 4, B = 2, O = 3;
    const auto x = randomFloats(random, T * B * O);
    const std::vector<unsigned> steps = kind < 2   ? std::vector<unsigned>{4, 4}
                                        : kind < 4 ? std::vector<unsigned>{3, 1}
                                                   : std::vector<unsigned>{2, 2};
    Fixture f;
    Tensor limits;
    if (kind >= 2)
      limits = f.constant<unsigned>({kind < 4 ? B : 1},
                                    {steps.begin(), steps.begin() + (kind < 4 ? 2 : 1)});
    const rnn::RnnParams params(FLOAT, B, T, limits, {O, O});
    CHECK_EQ(params.batchVariableTimeSteps(), kind == 2 || kind == 3);
    const Tensor in = f.constant<float>({T, B, O}, x);
    const Tensor init = rnn::createInitialState(f.graph, params, true, 1, 1);
    popops::zero(f.graph, init, f.prog);
    const Tensor out = rnn::createOutputTensor(f.graph, params, 1),
                 sums = rnn::createOutputTensor(f.graph, params, 1);
    Tensor kept = rnn::createOutputTensor(f.graph, params, 2, 1);
    const auto step = [&](Graph& g, const rnn::TimeStepState& time,
                          const rnn::RnnBatchwiseFlags& flags, std::vector<Tensor>& state,
                          const rnn::RnnSlice& slice, std::vector<Tensor>& created, Sequence* init,
                          const DebugNameAndId& dnai) {
      Sequence loop;
      if (created.empty()) {
        created.push_back(g.addVariable(UNSIGNED_INT, {1}, VariableMappingMethod::LINEAR, {dnai}));
        popops::zero(g, created[0], *init);
      }
      popops::addInPlace(g, created[0], time.counter, loop);
      loop.add(Copy(state[0][0], slice.interimOut[0]));
      loop.add(Copy(slice.inputs[0], slice.interimOut[1]));
      const Tensor input = flags.valid()
                               ? popops::mul(g, slice.inputs[0], flags.mask.expand({1}), loop)
                               : slice.inputs[0];
      popops::addInPlace(g, state[0][0], input, loop);
      loop.add(Copy(popops::mul(g, state[0][0], 2.0f, loop), slice.outputs[0][0]));
      return loop;
    };
    OptionFlags options{{"codeReuse", "true"}};
    const auto result = rnn::Rnn(f.graph, params, reverse, {init}, {sums, 0}, {in}, nullptr, &kept,
                                 {out}, {}, f.prog, step, 1, options);
    CHECK_EQ(result.size(), 2u);
    const Tensor counted = popops::cast(f.graph, result[1], FLOAT, f.prog);
    const auto found = f.run(flat({result[0], sums, out, kept, counted}));
    const auto wanted = summed(x, steps, reverse, T, B, O);
    checkFrom(found, 0, wanted[0]);
    checkFrom(found, B * O, wanted[1]);
    checkFrom(found, (1 + 2 * T) * B * O, wanted[2]);
    checkFrom(found, (1 + 4 * T) * B * O, wanted[3]);
  }
}

TEST(temporaries_are_gathered) {
  // Temporaries are the inputs; gathers add them, weighted with another input.
  std::mt19937 random(3);
  const std::size_t T = 6, B = 2, O = 2;
  const auto x = randomFloats(random, T * B * O), w = randomFloats(random, T * B * O);
  for (const unsigned cadence : {1u, 2u, 3u, 6u}) {
    Fixture f;
    const rnn::RnnParams params(FLOAT, B, T, {O, O});
    const Tensor in = f.constant<float>({T, B, O}, x), weights = f.constant<float>({T, B, O}, w);
    const Tensor init = rnn::createInitialState(f.graph, params, true, 1, 1);
    const Tensor sum = f.variable("sum", {B, O});
    popops::zero(f.graph, {init, sum}, f.prog);
    const auto step = [&](Graph& g, const rnn::TimeStepState&, const rnn::RnnBatchwiseFlags&,
                          std::vector<Tensor>& state, const rnn::RnnSlice& slice,
                          std::vector<Tensor>&, Sequence*, const DebugNameAndId&) {
      Sequence loop;
      popops::addInPlace(g, state[0][0], slice.inputs[0], loop);
      loop.add(Copy(slice.inputs[0], slice.interimOut[0]));
      return loop;
    };
    const auto gather = [&](Graph& g, const rnn::RnnSlice& slice, unsigned steps, Sequence*,
                            const DebugNameAndId&) {
      Sequence loop;
      CHECK_EQ(steps, cadence);
      const Tensor products = popops::mul(g, slice.interimIn, slice.inputs[0], loop);
      const Tensor sums = popops::reduce(g, products, {0}, popops::Operation::ADD, loop);
      popops::addInPlace(g, sum, sums, loop);
      return loop;
    };
    OptionFlags options;
    const auto result = rnn::Rnn(f.graph, params, {init}, {Tensor(), 0}, {in}, Tensor(), 1, f.prog,
                                 step, {weights}, gather, 1, cadence, options);
    const auto found = f.run(flat({result[0], sum}));
    Values wanted(2 * B * O, 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      wanted[i % (B * O)] += x[i];
      wanted[B * O + i % (B * O)] += double{x[i]} * w[i];
    }
    checkFrom(found, 0, wanted);
    CHECK_THROWS(rnn::Rnn(f.graph, params, {init}, {Tensor(), 0}, {in}, Tensor(), 1, f.prog, step,
                          {weights}, gather, 1, 4, options),
                 "divide the 6");
  }
}

TEST(layers_of_halves_are_near_those_of_floats) {
  std::mt19937 random(4);
  const std::size_t T = 3, B = 2, I = 4, O = 4;
  const std::vector<std::vector<std::size_t>> shapes{{T, B, I}, {B, O},    {B, O},   {4, I, O},
                                                     {4, O, O}, {3, 2, O}, {T, B, O}};
  std::vector<std::vector<float>> values;
  for (const auto& shape : shapes) {
    std::size_t n = 1;
    for (const std::size_t d : shape) n *= d;
    values.push_back(randomFloats(random, n));
    for (auto& v : values.back()) v /= 2;
  }
  std::vector<std::vector<float>> found;
  for (const Type type : {FLOAT, HALF}) {
    Fixture f;
    std::vector<Tensor> t;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      t.push_back(f.constant<float>(shapes[i], values[i], type));
    const Tensor steps = f.constant<unsigned>({B}, {3, 2});
    Tensor kept, inputGrad, kept2, inputGrad2;
    const popnn::lstm::LstmParams lstm(type, B, T, steps, {I, O});
    const popnn::lstm::LstmWeights weights{t[3], t[4], t[5].slice(0, 2).reshape({4, O})};
    const auto y = popnn::lstm::lstmFwd(f.graph, lstm, {t[1], t[2]}, t[0], weights, &kept, f.prog);
    popnn::lstm::LstmWeights grads;
    popnn::lstm::lstmBwdWithWU(f.graph, lstm, f.prog, {t[1], t[2]}, kept, weights, t[0], y.first,
                               t[6], nullptr, &inputGrad, grads);
    popnn::gru::GruParams gru(type, B, T, steps, {I, O});
    gru.resetAfter = true;
    const popnn::gru::GruWeights gates{t[3].slice(0, 3), t[4].slice(0, 3), t[5]};
    const Tensor z = popnn::gru::gruFwd(f.graph, gru, t[1], t[0], gates, &kept2, f.prog);
    popnn::gru::GruWeights grads2;
    popnn::gru::gruBwdWithWU(f.graph, gru, f.prog, t[1], kept2, gates, t[0], z, t[6], &inputGrad2,
                             grads2);
    const Tensor all = flat({y.first, y.second, inputGrad, grads.inputWeights, grads.biases, z,
                             inputGrad2, grads2.outputWeights, grads2.biases});
    CHECK_EQ(all.elementType(), type);
    found.push_back(f.run(popops::cast(f.graph, all, FLOAT, f.prog)));
  }
  for (std::size_t i = 0; i < found[0].size(); ++i)
    CHECK_NEAR(found[0][i], found[1][i], 1e-2 * (1 + std::abs(found[0][i])));
}
