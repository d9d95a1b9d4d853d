#include <gcl/CollectiveBalancedReorder.hpp>
#include <gcl/Collectives.hpp>
#include <poplar/Engine.hpp>
#include <poplin/ConvUtil.hpp>
#include <popops/ElementWise.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;

namespace {

constexpr unsigned kReplicas = 4;

/// [3, 7] with 10 elements on tile 1, 1 on tile 2 and 10 on tile 5.
Tensor uneven(Graph& graph) {
  const Tensor t = graph.addVariable(FLOAT, {3, 7});
  const Tensor flat = t.flatten();
  graph.setTileMapping(flat.slice(0, 4), 5);
  graph.setTileMapping(flat.slice(4, 14), 1);
  graph.setTileMapping(flat.slice(14, 15), 2);
  graph.setTileMapping(flat.slice(15, 21), 5);
  return t;
}

}  // namespace

TEST(replicas_share_the_elements_of_each_tile) {
  Fixture f;
  const Tensor t = uneven(f.graph);
  gcl::CollectiveBalancedReorder reorder(f.graph, t, kReplicas);
  CHECK(reorder.getReferenceShape() == t.shape());
  CHECK_EQ(reorder.getNumRearrangedTensorElems(), kReplicas * (3U + 1U + 3U));
  const Tensor slice = reorder.createReplicaSlice(FLOAT);
  const Tensor all = reorder.createCollectivesTensor(FLOAT, "all");
  CHECK_EQ(slice.numElements() * kReplicas, all.numElements());
  const auto on = f.graph.getTileMapping(all);
  CHECK(on[1].size() == kReplicas && on[1][0].size() == 3);
  CHECK(on[2].size() == kReplicas && on[2][0].size() == 1);
  // Each element is on the tile that it was on.
  const Tensor back = reorder.undoRearrangeForCollective(all);
  CHECK(back.shape() == t.shape());
  CHECK(f.graph.getTileMapping(back) == f.graph.getTileMapping(t));
  CHECK(back.isParallelWriteable());
  // The host's rearrangement has the same places.
  const auto& host = reorder.getHostRearrangement();
  std::vector<float> values(21), gathered(host.getNumRearrangedTensorElems()), again(21);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  host.rearrangeForCollective(reinterpret_cast<const char*>(values.data()),
                              reinterpret_cast<char*>(gathered.data()), sizeof(float));
  host.undoRearrangeForCollective(reinterpret_cast<const char*>(gathered.data()),
                                  reinterpret_cast<char*>(again.data()), sizeof(float));
  CHECK(again == values);
  f.graph.setInitialValue(all, gathered);
  CHECK(f.run(back) == values);
  CHECK_THROWS(gcl::CollectiveBalancedReorder(f.graph, t, 0), "at least one replica");
  CHECK_THROWS(reorder.undoRearrangeForCollective(slice), "28 elements");
}

TEST(a_scattered_sum_is_gathered_in_the_first_order) {
  const auto device = Fixture::modelOf(8, kReplicas);
  Graph graph(device, replication_factor(kReplicas));
  program::Sequence prog;
  const Tensor t = uneven(graph);
  std::vector<float> values(21);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i);
  graph.setInitialValue(t, values);
  gcl::CollectiveBalancedReorder reorder(graph, t, kReplicas);
  const Tensor all = reorder.createCollectivesTensor(FLOAT);
  graph.setInitialValue(all, std::vector<float>(all.numElements()));
  prog.add(program::Copy(t, reorder.undoRearrangeForCollective(all)));
  const Tensor slice =
      gcl::reduceScatterCrossReplica(graph, all, gcl::CollectiveOperator::ADD, prog);
  CHECK_EQ(slice.numElements(), 7U);
  const Tensor gathered = gcl::allGatherCrossReplica(graph, slice, prog);
  const Tensor out = graph.clone(t);
  prog.add(program::Copy(reorder.undoRearrangeForCollective(gathered), out));
  graph.createHostRead("out", out);
  Engine engine(graph, prog);
  engine.loadAndRun(device);
  std::vector<float> got(kReplicas * 21);
  engine.readTensor("out", got.data(), got.data() + got.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK_EQ(got[i], 4 * values[i % 21]);
}

TEST(groups_of_replicas_are_written_as_text) {
  std::ostringstream os;
  os << gcl::CommGroup(gcl::CommGroupType::ORTHOGONAL, 2);
  CHECK_EQ(os.str(), "CommGroup(ORTHOGONAL, size 2, stride 0)");
}

TEST(ranges_of_a_convolution_hold_all_pairs_that_meet) {
  using Transform = poplin::ConvParams::InputTransform;
  const poplin::ConvParams params(FLOAT, FLOAT, 1, {7}, {3}, 1, 1, 1,
                                  Transform({1}, {0}, {2}, {2}, {1}, {false}),
                                  Transform({0}, {0}, {2}, {0}, {0}, {true}),
                                  poplin::ConvParams::OutputTransform({0}, {1}, {2}, {1}, {0}));
  const auto outputs = static_cast<unsigned>(params.getOutputSize(0));
  for (unsigned o = 0; o < outputs; ++o) {
    for (unsigned k = 0; k < 3; ++k) {
      const unsigned i = poplin::getInputIndex(0, o, k, params);
      if (i != ~0U) CHECK_EQ(poplin::getKernelIndex(0, o, i, params), k);
    }
  }
  // Over all pairs of ranges, against a plain search.
  for (unsigned begin = 0; begin < outputs; ++begin) {
    for (unsigned k = 0; k < 3; ++k) {
      unsigned low = ~0U, high = 0, first = ~0U, last = 0;
      for (unsigned o = begin; o < outputs; ++o) {
        const unsigned i = poplin::getInputIndex(0, o, k, params);
        if (i == ~0U) continue;
        low = std::min(low, i), high = std::max(high, i);
        first = std::min(first, o), last = std::max(last, o);
      }
      const auto in = poplin::getInputRange(0, {begin, outputs}, k, params);
      const auto out = poplin::getOutputRangeForKernelIndex(0, {begin, outputs}, k, params);
      if (low == ~0U) {
        CHECK(in.first == in.second && out.first == out.second);
      } else {
        CHECK(in.first == low && in.second == high + 1);
        CHECK(out.first == first && out.second == last + 1);
      }
    }
  }
  const auto all = poplin::getInputRange(0, {0, outputs}, params);
  CHECK(poplin::getOutputRangeForInputRange(0, {0, outputs}, all, params) ==
        poplin::getOutputRangeForKernelRange(0, {0, outputs}, {0, 3}, params));
  unsigned low = ~0U, high = 0;  // of the kernel, for the first input element that is used
  for (unsigned o = 0; o < outputs; ++o) {
    for (unsigned k = 0; k < 3; ++k) {
      if (poplin::getInputIndex(0, o, k, params) != all.first) continue;
      low = std::min(low, k), high = std::max(high, k);
    }
  }
  CHECK(low <= high);
  CHECK(poplin::getKernelRange(0, {0, outputs}, all.first, params) ==
        poplin::IndexRange(low, high + 1));
  const auto every = poplin::getKernelRange(0, {0, outputs}, all, params);
  CHECK(every.first <= low && every.second > high);
}
