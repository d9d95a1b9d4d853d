#include <algorithm>
#include <cmath>
#include <map>
#include <popnn/CTCInference.hpp>
#include <popnn/CTCLoss.hpp>
#include <popops/Cast.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"
#include "Gradients.hpp"

using namespace poplar;
using namespace poplar::program;
namespace ctc = popnn::ctc;

namespace {

/// The labels of a path: repeats merged, blanks left out.
std::vector<unsigned> collapsed(const std::vector<unsigned>& path, unsigned blank) {
  std::vector<unsigned> labels;
  for (std::size_t t = 0; t < path.size(); ++t)
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
  return labels;
}

/// Calls back with every path of n steps.
void forEachPath(std::size_t n, std::size_t classes,
                 const std::function<void(const std::vector<unsigned>&)>& call) {
  std::vector<unsigned> path(n, 0);
  for (;;) {
    call(path);
    std::size_t i = 0;
    while (i < n && ++path[i] == classes) path[i++] = 0;
    if (i == n) return;
  }
}

/// -log of the sum over all paths that collapse to the labels; logits [n][classes] or, if
/// `are_logs`, log-probabilities.
double lossOf(const Values& logits, std::size_t classes, const std::vector<unsigned>& labels,
              unsigned blank, bool are_logs) {
  const std::size_t n = logits.size() / classes;
  Values logs = logits;
  for (std::size_t t = 0; t < n && !are_logs; ++t) {
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(logits[t * classes + c]);
    for (std::size_t c = 0; c < classes; ++c) logs[t * classes + c] -= std::log(sum);
  }
  double total = 0;
  forEachPath(n, classes, [&](const std::vector<unsigned>& path) {
    if (collapsed(path, blank) != labels) return;
    double log = 0;
    for (std::size_t t = 0; t < n; ++t) log += logs[t * classes + path[t]];
    total += std::exp(log);
  });
  return -std::log(total);
}

}  // namespace

TEST(ctc_loss_sums_over_all_alignments) {
  std::mt19937 random(1);
  for (int round = 0; round < 16; ++round) {
    const std::size_t T = 1 + random() % 5, B = 1 + random() % 3, C = 2 + random() % 2,
                      L = random() % 4;
    const unsigned blank = static_cast<unsigned>(random() % C);
    const bool logits = round % 2, logs_only = round % 4 == 2;
    const auto x = randomFloats(random, T * B * C);
    std::vector<unsigned> labels(B * L), lengths(B), counts(B);
    for (auto& l : labels)
      while ((l = static_cast<unsigned>(random() % C)) == blank) continue;
    for (auto& n : lengths) n = static_cast<unsigned>(1 + random() % T);
    for (auto& n : counts) n = static_cast<unsigned>(random() % (L + 1));
    Fixture f;
    const auto plan =
        ctc::plan(f.graph, FLOAT, FLOAT, static_cast<unsigned>(B), static_cast<unsigned>(T),
                  static_cast<unsigned>(L), static_cast<unsigned>(C));
    const Tensor data = ctc::createDataInput(f.graph, FLOAT, B, T, C, plan);
    f.graph.setInitialValue(data, x);
    const Tensor l = f.constant<unsigned>({B, L}, labels), n = f.constant<unsigned>({B}, lengths),
                 m = f.constant<unsigned>({B}, counts);
    const OptionFlags options =
        logs_only ? OptionFlags{{"includeSoftmaxGradient", "false"}} : OptionFlags{};
    const auto [loss, gradient] =
        logits ? ctc::calcLossAndGradientLogits(f.graph, FLOAT, data, l, n, m, f.prog, blank, plan)
               : ctc::calcLossAndGradientLogProbabilities(f.graph, FLOAT, data, l, n, m, f.prog,
                                                          blank, plan, {}, options);
    const auto found = f.run(flat({loss, gradient}));
    for (std::size_t b = 0; b < B; ++b) {
      const std::vector<unsigned> wanted(labels.begin() + static_cast<long>(b * L),
                                         labels.begin() + static_cast<long>(b * L + counts[b]));
      Values part;
      for (std::size_t t = 0; t < lengths[b]; ++t)
        for (std::size_t c = 0; c < C; ++c) part.push_back(x[(t * B + b) * C + c]);
      const auto run = [&](const Values& at) {
        return Values{lossOf(at, C, wanted, blank, !logits)};
      };
      const double value = run(part)[0];
      if (!std::isfinite(value)) {
        CHECK(std::isinf(found[b]) && found[b] > 0);
      } else {
        CHECK_NEAR(found[b], value, 1e-3);
      }
      auto slope = std::isfinite(value) ? differences(run, part, {1}) : Values(part.size(), 0);
      for (std::size_t i = 0; i < part.size() && !logits && !logs_only && std::isfinite(value); ++i)
        slope[i] += std::exp(part[i]);  // the softmax's gradient of logits that are normalised
      slope.resize(T * C, 0);
      for (std::size_t t = 0; t < T; ++t)
        for (std::size_t c = 0; c < C; ++c)
          CHECK_NEAR(found[B + (t * B + b) * C + c], slope[t * C + c], 2e-3);
    }
  }
}

TEST(ctc_plans_are_compared_and_checked) {
  Fixture f;
  const auto a = ctc::plan(f.graph, FLOAT, HALF, 2, 5, 3, 4, {{"partialsType", "float"}});
  auto b = a;
  CHECK(a == b && !(a != b) && !(a < b));
  b = ctc::plan(f.graph, FLOAT, HALF, 2, 6, 3, 4);
  CHECK(a != b && a < b);
  std::ostringstream text;
  text << a;
  CHECK(text.str().find("time 5") != std::string::npos);
  const Tensor data = ctc::createDataInput(f.graph, HALF, 2, 6, 4, b);
  const Tensor labels = ctc::createLabelsInput(f.graph, UNSIGNED_INT, 2, 3, b);
  const Tensor n = f.constant<unsigned>({2}, {1, 1});
  const auto [loss, gradient] =
      ctc::calcLossAndGradientLogits(f.graph, HALF, data, labels, n, n, f.prog, 0, b);
  CHECK_EQ(loss.elementType(), HALF);
  CHECK(gradient.shape() == data.shape());
  CHECK_THROWS(ctc::calcLossAndGradientLogits(f.graph, HALF, data, labels, n, n, f.prog, 0, a),
               "time <= 5");
  CHECK_THROWS(ctc::calcLossAndGradientLogits(f.graph, HALF, data, labels, n, n, f.prog, 4, b),
               "blank");
  CHECK_THROWS(ctc::plan(f.graph, FLOAT, HALF, 2, 5, 3, 4, {{"beams", "2"}}), "beams");
  const auto constrained = [&](const char* option, const char* value) {
    return ctc::plan(f.graph, FLOAT, HALF, 2, 5, 3, 4, {{option, value}});
  };
  constrained("planConstraints", R"({"parallel": {"time": 1, "batch": 2}})");
  constrained("availableMemoryProportion", "0.9");
  CHECK_THROWS(constrained("availableMemoryProportion", "0.0"), "above 0");
  CHECK_THROWS(constrained("planConstraints", R"({"parallel": {"batch": 0}})"), "batch");
  CHECK_THROWS(constrained("planConstraints", R"({"parallel": {"xyz": 1}})"), "xyz");
  for (const char* text :
       {"time", "[1]", R"({"time": 2})", R"({"parallel": {"time": 2}} 3)",
        R"({"parallel": {"time": -1}})", R"({"parallel": {"time": 1, "time": 2}})",
        R"({"parallel": {"time": "2"}})", R"({"parallel": 4})"})
    CHECK_THROWS(constrained("planConstraints", text), "[popnn::ctc] planConstraints needs");
}

TEST(ctc_beams_that_hold_all_sequences_are_exact) {
  std::mt19937 random(2);
  for (int round = 0; round < 8; ++round) {
    const std::size_t T = 1 + random() % 3, B = 1 + random() % 2, C = 2 + random() % 2;
    const unsigned blank = static_cast<unsigned>(random() % C), width = 16, top = 3;
    const auto x = randomFloats(random, T * B * C);
    std::vector<unsigned> lengths(B);
    for (auto& n : lengths) n = static_cast<unsigned>(1 + random() % T);
    Fixture f;
    const auto plan =
        popnn::ctc_infer::plan(f.graph, FLOAT, static_cast<unsigned>(B), static_cast<unsigned>(T),
                               static_cast<unsigned>(C), width);
    const Tensor data = popnn::ctc_infer::createDataInput(f.graph, FLOAT, B, T, C, plan);
    f.graph.setInitialValue(data, x);
    const auto [losses, counts, labels] = popnn::ctc_infer::beamSearchDecoderLogits(
        f.graph, data, f.constant<unsigned>({B}, lengths), f.prog, blank, width, top, plan);
    CHECK(labels.shape() == (std::vector<std::size_t>{B, top, T}));
    const auto found = f.run(flat({losses, popops::cast(f.graph, counts, FLOAT, f.prog),
                                   popops::cast(f.graph, labels, FLOAT, f.prog)}));
    for (std::size_t b = 0; b < B; ++b) {
      Values part;
      for (std::size_t t = 0; t < lengths[b]; ++t)
        for (std::size_t c = 0; c < C; ++c) part.push_back(x[(t * B + b) * C + c]);
      std::map<std::vector<unsigned>, double> sequences;
      forEachPath(lengths[b], C, [&](const std::vector<unsigned>& path) {
        const auto sequence = collapsed(path, blank);
        sequences.emplace(sequence, lossOf(part, C, sequence, blank, false));
      });
      std::vector<std::pair<double, std::vector<unsigned>>> best;
      for (const auto& [sequence, loss] : sequences) best.emplace_back(loss, sequence);
      std::sort(best.begin(), best.end());
      for (std::size_t k = 0; k < top; ++k) {
        if (k >= best.size()) {
          CHECK(std::isinf(found[b * top + k]));
          continue;
        }
        CHECK_NEAR(found[b * top + k], best[k].first, 1e-3);
        const auto& wanted = best[k].second;
        CHECK_EQ(found[(B + b) * top + k], static_cast<float>(wanted.size()));
        for (std::size_t t = 0; t < T; ++t)
          CHECK_EQ(found[(2 * B + b * T) * top + k * T + t],
                   static_cast<float>(t < wanted.size() ? wanted[t] : blank));
      }
    }
    CHECK_THROWS(popnn::ctc_infer::beamSearchDecoderLogits(f.graph, data, data, f.prog, blank,
                                                           width, width + 1, plan),
                 "at most as many");
  }
}

TEST(narrow_ctc_beams_follow_the_best) {
  // One beam: greedy over labels. a a blank a b, each nearly certain.
  const std::vector<unsigned> path{1, 1, 0, 1, 2};
  std::vector<float> x;
  for (const unsigned wanted : path)
    for (unsigned c = 0; c < 3; ++c) x.push_back(c == wanted ? 8.0f : 0.0f);
  for (const unsigned width : {1u, 2u, 5u}) {
    Fixture f;
    const auto plan = popnn::ctc_infer::plan(f.graph, FLOAT, 1, 5, 3, width);
    const auto [losses, counts, labels] = popnn::ctc_infer::beamSearchDecoderLogits(
        f.graph, f.constant<float>({5, 1, 3}, x), f.constant<unsigned>({1}, {5}), f.prog, 0, width,
        1, plan);
    const auto found = f.run<unsigned>(flat({counts, labels}));
    CHECK(found == (std::vector<unsigned>{3, 1, 1, 2, 0, 0}));
  }
}
