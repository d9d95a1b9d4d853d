#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <popnn/Loss.hpp>
#include <popops/Cast.hpp>
#include <poputil/VarStructure.hpp>
#include <poputil/exceptions.hpp>
#include <pvti/pvti.hpp>

#include "Check.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

/// Probabilities of three rows, and labels of which the last is masked.
struct Classifier {
  Device device = IPUModel().createDevice();
  Graph graph{device};
  std::vector<float> p{0.5f, 0.25f, 0.25f, 0.125f, 0.75f, 0.125f, 0.2f, 0.2f, 0.6f};
  Tensor outputs = graph.addConstant(FLOAT, {3, 3}, p);
  Tensor labels = graph.addConstant<unsigned>(UNSIGNED_INT, {3}, {0, 2, MASKED_LABEL_CODE});
  Tensor loss = graph.addVariable(FLOAT, {3}, VariableMappingMethod::LINEAR, "loss");
  Tensor deltas = graph.addVariable(FLOAT, {3, 3}, VariableMappingMethod::LINEAR, "deltas");
  Tensor correct = graph.addVariable(UNSIGNED_INT, {1}, VariableMappingMethod::LINEAR, "correct");

  std::vector<float> losses, gradients;
  unsigned num_correct = 0;

  void run(const Program& prog) {
    graph.createHostRead("loss", loss);
    graph.createHostRead("deltas", deltas);
    graph.createHostRead("correct", correct);
    Engine engine(graph, prog);
    engine.loadAndRun(device);
    losses.resize(3);
    gradients.resize(9);
    engine.readTensor("loss", losses.data());
    engine.readTensor("deltas", gradients.data());
    engine.readTensor("correct", &num_correct);
  }
};

}  // namespace

TEST(cross_entropy_and_its_gradient) {
  Classifier c;
  c.run(popnn::calcLoss(c.graph, c.outputs, c.labels, c.loss, c.deltas, c.correct,
                        popnn::CROSS_ENTROPY_LOSS, "loss"));
  CHECK_NEAR(c.losses[0], std::log(2.0), 1e-6);
  CHECK_NEAR(c.losses[1], std::log(8.0), 1e-6);
  CHECK_EQ(c.losses[2], 0.0f);
  for (int i = 0; i < 9; ++i) {
    const double hot = i == 0 || i == 5;
    CHECK_NEAR(c.gradients[i], i < 6 ? c.p[i] - hot : 0.0, 1e-6);
  }
  CHECK_EQ(c.num_correct, 1u);
}

TEST(correct_rows_are_added_to_those_of_earlier_batches) {
  Classifier c;
  Sequence prog;
  prog.add(Copy(c.graph.addConstant(UNSIGNED_INT, {1}, 10U), c.correct));
  prog.add(Repeat(4, popnn::calcLoss(c.graph, c.outputs, c.labels, c.loss, c.deltas, c.correct,
                                     popnn::CROSS_ENTROPY_LOSS)));
  prog.add(popnn::calcAccuracy(c.graph, c.outputs, c.labels, c.correct));
  c.run(prog);
  CHECK_EQ(c.num_correct, 15u);  // one in each
}

TEST(scaled_outputs_and_deltas) {
  Classifier c;
  for (float& p : c.p) p *= 4;
  c.outputs = c.graph.addConstant(FLOAT, {3, 3}, c.p);
  Tensor scale = c.graph.addConstant(FLOAT, {1}, 4.0f);
  Tensor deltas_scale = c.graph.addConstant(FLOAT, {1}, 8.0f);
  c.run(popnn::calcLoss(c.graph, c.outputs, c.labels, c.loss, c.deltas, deltas_scale, scale,
                        popnn::CROSS_ENTROPY_LOSS));
  CHECK_NEAR(c.losses[0], std::log(2.0), 1e-6);
  CHECK_NEAR(c.gradients[0], (2.0 - 4.0) * 8.0 / 4.0, 1e-5);
}

TEST(scales_of_halves_may_be_large) {
  Classifier c;
  for (float& p : c.p) p *= 16384;
  c.outputs = c.graph.addConstant(HALF, {3, 3}, c.p);
  c.loss = c.graph.addVariable(HALF, {3}, VariableMappingMethod::LINEAR);
  c.deltas = c.graph.addVariable(HALF, {3, 3}, VariableMappingMethod::LINEAR);
  const Tensor deltas = c.graph.addVariable(FLOAT, {3, 3}, VariableMappingMethod::LINEAR);
  const Tensor scale = c.graph.addConstant(HALF, {}, 16384.0f);
  const Tensor deltas_scale = c.graph.addConstant(HALF, {}, 1024.0f);
  Sequence prog;
  prog.add(popnn::calcLoss(c.graph, c.outputs, c.labels, c.loss, c.deltas, deltas_scale, scale,
                           popnn::CROSS_ENTROPY_LOSS));
  prog.add(Copy(popops::cast(c.graph, c.deltas, FLOAT, prog), deltas));
  c.deltas = deltas;
  c.loss = popops::cast(c.graph, c.loss, FLOAT, prog);
  c.run(prog);
  CHECK_NEAR(c.losses[0], std::log(2.0), 1e-3);
  CHECK_NEAR(c.gradients[0], -512, 0.5);
  CHECK_NEAR(c.gradients[1], 256, 0.5);
}

TEST(squared_loss) {
  Classifier c;
  Tensor expected = c.graph.addConstant(FLOAT, {3, 3}, 0.25f);
  c.run(popnn::calcLoss(c.graph, c.outputs, expected, c.loss, c.deltas, popnn::SUM_SQUARED_LOSS));
  CHECK_NEAR(c.losses[0], 0.5 * 0.0625, 1e-7);
  CHECK_NEAR(c.gradients[3], -0.125, 1e-7);
  CHECK_THROWS(popnn::calcLoss(c.graph, c.outputs, expected.transpose()[0], c.loss, c.deltas,
                               popnn::SUM_SQUARED_LOSS),
               "INT or UNSIGNED_INT labels");
}

TEST(squared_loss_of_labels) {
  Classifier c;
  c.run(popnn::calcLoss(c.graph, c.outputs, c.labels, c.loss, c.deltas, popnn::SUM_SQUARED_LOSS));
  const std::size_t labels[] = {0, 2, 3};  // none in the last row
  for (std::size_t row = 0; row < 3; ++row) {
    float loss = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const float delta = c.p[3 * row + i] - (labels[row] == i ? 1.0f : 0.0f);
      CHECK_NEAR(c.gradients[3 * row + i], delta, 1e-6);
      loss += 0.5f * delta * delta;
    }
    CHECK_NEAR(c.losses[row], loss, 1e-6);
  }
}

TEST(extremes_of_rows) {
  Device device = IPUModel().createDevice();
  Graph graph(device);
  Tensor x = graph.addConstant<float>(FLOAT, {2, 3}, {3, 1, 3, -1, 0, -2});
  Sequence prog;
  auto [least, where] = popnn::minAndArgMin(graph, x, prog);
  Tensor most = popnn::argMax(graph, x, prog);
  Tensor order;
  Tensor two = popnn::topK(graph, x, order, 2, true, prog);
  CHECK(two.shape() == (std::vector<std::size_t>{2, 1, 2}) && order.shape() == two.shape());
  const std::pair<const char*, Tensor> results[] = {
      {"least", least}, {"where", where}, {"most", most}, {"two", two}};
  for (const auto& [name, t] : results) graph.createHostRead(name, t);
  Engine engine(graph, prog);
  engine.loadAndRun(device);
  float values[4];
  unsigned indices[2];
  engine.readTensor("least", values);
  CHECK_EQ(values[1], -2.0f);
  engine.readTensor("where", indices);
  CHECK_EQ(indices[0] * 10 + indices[1], 12u);
  engine.readTensor("most", indices);
  CHECK_EQ(indices[0] * 10 + indices[1], 1u);
  engine.readTensor("two", values);
  CHECK_EQ(values[2], 0.0f);
  CHECK_EQ(values[3], -1.0f);
}

TEST(partitions_of_tensors_are_contiguous) {
  Graph graph(IPUModel().createDevice());
  Tensor t = poputil::createPartitionableTensor(graph, FLOAT, {5, 4}, {2, 3});
  std::vector<std::size_t> sizes;
  poputil::iterateTensorPartitions(t, {2, 3},
                                   [&](const std::vector<std::size_t>& at, const Tensor& slice) {
                                     CHECK(slice.getContiguousRegions().size() <= 1);
                                     CHECK_EQ(at[0] * 3 + at[1], sizes.size());
                                     sizes.push_back(slice.numElements());
                                   });
  CHECK(sizes == (std::vector<std::size_t>{6, 6, 0, 4, 4, 0}));
  CHECK_THROWS(poputil::createPartitionableTensor(graph, FLOAT, {5}, {2, 3}), "1 partition");
  Tensor grouped = graph.addVariable(FLOAT, {4, 3, 8}, VariableMappingMethod::LINEAR, "grouped")
                       .dimShuffle({1, 0, 2})
                       .reshape({3, 32});
  CHECK_EQ(poputil::detectInnermostGrouping(graph, grouped) % 8, 0u);
  CHECK_EQ(poputil::detectDimGroupings(graph, grouped)[0].first, 1u);
}

TEST(trace_points_leave_a_program_as_it_is) {
  const pvti::TraceChannel channel{"test"};
  pvti::Tracepoint scoped(&channel, "all");
  pvti::Tracepoint::begin(&channel, "part");
  pvti::Tracepoint::end(&channel, "part");
  pvti::Graph("memory", "bytes").addSeries("host").add(1.0);
  CHECK_EQ(channel.name, "test");
}
