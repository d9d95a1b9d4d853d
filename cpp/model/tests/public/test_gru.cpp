#include <algorithm>
#include <cmath>
#include <popnn/Gru.hpp>

#include "Check.hpp"
#include "Fixture.hpp"
#include "Gradients.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// A GRU in double. `steps` has the length of each sequence. All values are in one vector, for
/// finite differences.
struct Gru {
  std::size_t T, B, I, O;
  bool full, after, attention;
  std::vector<BasicGruCellUnit> order;
  std::vector<unsigned> steps;

  std::vector<std::vector<std::size_t>> shapes() const {  // x, h, W, U, b, a
    const auto biases = after ? std::vector<std::size_t>{3, 2, O} : std::vector<std::size_t>{3, O};
    return {{T, B, I}, {B, O}, {3, I, O}, {3, O, O}, biases, {B, T}};
  }
  /// The outputs [T][B][O] (or of the last step).
  Values run(const Values& v) const {
    std::vector<const double*> parts{v.data()};
    for (const auto& shape : shapes()) {
      std::size_t n = 1;
      for (const std::size_t d : shape) n *= d;
      parts.push_back(parts.back() + n);
    }
    const double *x = parts[0], *W = parts[2], *U = parts[3], *b = parts[4], *a = parts[5];
    Values h(parts[1], parts[2]), found;
    const auto unit = [&](BasicGruCellUnit which) {
      return static_cast<std::size_t>(std::find(order.begin(), order.end(), which) - order.begin());
    };
    for (std::size_t t = 0; t < T; ++t) {
      for (std::size_t n = 0; n < B; ++n) {
        const auto in = [&](BasicGruCellUnit which, std::size_t o) {
          const std::size_t u = unit(which);
          double s = after ? b[2 * u * O + o] : b[u * O + o];
          for (std::size_t i = 0; i < I; ++i) s += x[(t * B + n) * I + i] * W[(u * I + i) * O + o];
          return s;
        };
        const auto back = [&](BasicGruCellUnit which, const Values& state, std::size_t o) {
          const std::size_t u = unit(which);
          double s = after ? b[(2 * u + 1) * O + o] : 0;
          for (std::size_t i = 0; i < O; ++i) s += state[i] * U[(u * O + i) * O + o];
          return s;
        };
        const auto row = h.begin() + static_cast<long>(n * O);
        const Values before(row, row + static_cast<long>(O));
        Values reset(O), product(O), next(O);
        for (std::size_t o = 0; o < O; ++o) {
          reset[o] = sigmoid(in(BASIC_GRU_CELL_RESET_GATE, o) +
                             back(BASIC_GRU_CELL_RESET_GATE, before, o));
          product[o] = reset[o] * before[o];
        }
        for (std::size_t o = 0; o < O; ++o) {
          double u = sigmoid(in(BASIC_GRU_CELL_UPDATE_GATE, o) +
                             back(BASIC_GRU_CELL_UPDATE_GATE, before, o));
          if (attention) u *= 1 - a[n * T + t];
          const auto candidate = BASIC_GRU_CELL_CANDIDATE;
          const double c =
              std::tanh(in(candidate, o) + (after ? reset[o] * back(candidate, before, o)
                                                  : back(candidate, product, o)));
          next[o] = u * before[o] + (1 - u) * c;
        }
        if (t < steps[n]) std::copy(next.begin(), next.end(), row);
        for (std::size_t o = 0; full && o < O; ++o)
          found.push_back(t < steps[n] ? h[n * O + o] : 0);
      }
    }
    return full ? found : h;
  }
};

/// A layer's tensors, and the overload that its kind needs.
struct Program {
  Fixture& f;
  const popnn::gru::GruParams& params;
  const popnn::gru::GruWeights& weights;
  Tensor x, h, a, steps;
  bool variable, attention;
  Tensor kept{}, inputGrad{}, attentionGrad{};
  popnn::gru::GruWeights grads{};

  Tensor forward() {
    auto& g = f.graph;
    if (attention && variable)
      return popnn::gru::auGruFwd(g, params, h, x, steps, weights, &kept, a, f.prog);
    if (attention) return popnn::gru::auGruFwd(g, params, h, x, weights, &kept, a, f.prog);
    if (variable) return popnn::gru::gruFwd(g, params, h, x, steps, weights, &kept, f.prog);
    return popnn::gru::gruFwd(g, params, h, x, weights, &kept, f.prog);
  }
  Tensor backward(const Tensor& output, const Tensor& grad) {
    auto& g = f.graph;
    if (attention) {
      auto varied = params;
      if (variable) varied.rnn.varTimeSteps = steps;
      return popnn::gru::auGruBwdWithWU(g, varied, f.prog, h, kept, weights, x, output, grad,
                                        &inputGrad, grads, a, &attentionGrad, {}, {}, nullptr);
    }
    if (variable)
      return popnn::gru::gruBwdWithWU(g, params, f.prog, h, kept, weights, x, steps, output, grad,
                                      &inputGrad, grads, {}, {}, nullptr);
    return popnn::gru::gruBwdWithWU(g, params, f.prog, h, kept, weights, x, output, grad,
                                    &inputGrad, grads, {}, {}, nullptr);
  }
};

/// Checks one random layer, forward and backward, against finite differences.
void checkLayer(std::mt19937& random, int kind, bool after, bool attention) {
  Gru wanted{1 + random() % 3,
             1 + random() % 3,
             1 + random() % 3,
             1 + random() % 3,
             random() % 2 == 0,
             after,
             attention,
             popnn::gru::getDefaultBasicGruCellOrder(),
             {}};
  const auto [T, B, I, O] = std::tuple{wanted.T, wanted.B, wanted.I, wanted.O};
  if (random() % 2) std::swap(wanted.order[0], wanted.order[2]);
  for (std::size_t n = 0; n < B; ++n)
    wanted.steps.push_back(static_cast<unsigned>(kind == 0 ? T : random() % (T + 1)));
  Fixture f;
  Values v;
  std::vector<Tensor> parts;
  for (const auto& shape : wanted.shapes()) {
    std::size_t n = 1;
    for (const std::size_t d : shape) n *= d;
    const auto values = randomFloats(random, n);
    v.insert(v.end(), values.begin(), values.end());
    parts.push_back(f.constant<float>(shape, values));
  }
  popnn::gru::GruParams params(FLOAT, B, T, {I, O});
  params.outputFullSequence = wanted.full;
  params.resetAfter = after;
  params.cellOrder = wanted.order;
  const popnn::gru::GruWeights weights{parts[2], parts[3], parts[4]};
  Program program{f,
                  params,
                  weights,
                  parts[0],
                  parts[1],
                  parts[5],
                  f.constant<unsigned>({B}, wanted.steps),
                  kind != 0,
                  attention};
  const Tensor output = program.forward();
  const auto y = wanted.run(v);
  const auto slopes = randomFloats(random, y.size());
  const Tensor grad = f.constant<float>(output.shape(), slopes);
  const Tensor first = program.backward(output, grad);
  const auto& grads = program.grads;
  std::vector<Tensor> results{
      output, program.inputGrad, first, grads.inputWeights, grads.outputWeights, grads.biases};
  if (attention) results.push_back(program.attentionGrad);
  const auto found = f.run(flat(results));
  checkFrom(found, 0, y);
  auto gradient = differences([&](const Values& at) { return wanted.run(at); }, v,
                              {slopes.begin(), slopes.end()});
  if (!attention) gradient.resize(gradient.size() - B * T);
  CHECK_EQ(found.size(), y.size() + gradient.size());
  checkFrom(found, y.size(), gradient);
}

}  // namespace

TEST(gru_layers_and_their_gradients) {
  std::mt19937 random(1);
  for (int round = 0; round < 24; ++round) checkLayer(random, round & 1, round & 2, round & 4);
}

TEST(gru_tensors_and_figures) {
  Fixture f;
  popnn::gru::GruParams params(HALF, 2, 5, {3, 4});
  const auto weights = popnn::gru::createWeights(f.graph, params, "weights");
  CHECK(weights.inputWeights.shape() == (std::vector<std::size_t>{3, 3, 4}));
  CHECK(weights.biases.shape() == (std::vector<std::size_t>{3, 4}));
  params.resetAfter = true;
  CHECK(popnn::gru::createWeightsBiases(f.graph, params, "b").shape() ==
        (std::vector<std::size_t>{3, 2, 4}));
  CHECK(popnn::gru::createInput(f.graph, params, "in").shape() ==
        (std::vector<std::size_t>{5, 2, 3}));
  CHECK(popnn::gru::createInitialState(f.graph, params, "h", {}, nullptr).shape() ==
        (std::vector<std::size_t>{2, 4}));
  CHECK(popnn::gru::createAttention(f.graph, params, "a").shape() ==
        (std::vector<std::size_t>{2, 5}));
  CHECK_EQ(popnn::gru::getBasicGruCellFwdFlops(params), 5u * 2 * 4 * (6 * 7 + 5));
  CHECK(popnn::gru::getBasicGruCellBwdFlops(params) > popnn::gru::getBasicGruCellWuFlops(params));
  CHECK_THROWS(popnn::gru::createInput(f.graph, params, "in", {{"fast", "true"}}), "fast");
}
