// Collectives between the IPUs of a graph, and those of replicas under popops' names.
#include <gcl/CollectiveBalancedReorder.hpp>
#include <gcl/Collectives.hpp>
#include <popops/Collectives.hpp>
#include <poputil/exceptions.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using popops::CollectiveOperator;

namespace {

constexpr unsigned kIpus = 4;

/// Row i on IPU i.
Tensor rowsOf(Fixture& f, const std::vector<float>& values) {
  const std::size_t n = values.size() / kIpus;
  const auto t = f.constant<float>({kIpus, n}, values);
  for (unsigned ipu = 0; ipu < kIpus; ++ipu) f.graph.setTileMapping(t[ipu], 2 * ipu);
  return t;
}

unsigned ipuOf(const Graph& graph, const Tensor& t) {
  const auto mapping = graph.getTileMapping(t);
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    if (!mapping[tile].empty()) return tile / 2;
  return ~0U;
}

const std::vector<float> kValues{1, 2, 3, 4, 5, -6, 7, 8, 9, 10, 11, 12,
                                 0, 1, 2, 3, 4, 5,  6, 7, 8, 9,  10, 2};  // [4, 6]

}  // namespace

TEST(rows_are_reduced_in_each_ipu) {
  Fixture f(2, kIpus);
  const auto out = popops::allReduce(f.graph, rowsOf(f, kValues), CollectiveOperator::ADD, f.prog);
  for (unsigned i = 0; i < kIpus; ++i) CHECK_EQ(ipuOf(f.graph, out[i]), i);
  const auto got = f.run(out);
  for (std::size_t i = 0; i < got.size(); ++i) {
    float sum = 0;
    for (std::size_t row = 0; row < kIpus; ++row) sum += kValues[6 * row + i % 6];
    CHECK_EQ(got[i], sum);
  }
}

TEST(parts_of_the_reduction_are_scattered_and_gathered) {
  Fixture f(2, kIpus);
  const auto t = rowsOf(f, kValues);
  const auto chunks = popops::reduceScatter(f.graph, t, popops::Operation::MAX, f.prog);
  CHECK_EQ(chunks.chunks.size(), kIpus);
  CHECK(chunks.originalInput == t);
  std::size_t elements = 0;
  for (const auto& chunk : chunks.chunks) {
    elements += chunk.tensor.numElements();
    if (chunk.tensor.numElements() > 0) CHECK_EQ(ipuOf(f.graph, chunk.tensor), chunk.index);
  }
  CHECK_EQ(elements, 6U);
  CHECK_EQ(gcl::concatChunks(chunks).numElements(), 6U);
  const auto all = gcl::allGatherWithinReplica(f.graph, chunks, f.prog);
  for (unsigned i = 0; i < kIpus; ++i) CHECK_EQ(ipuOf(f.graph, all[i]), i);
  const auto got = f.run(all);
  for (std::size_t i = 0; i < got.size(); ++i) {
    float most = kValues[i % 6];
    for (std::size_t row = 0; row < kIpus; ++row) most = std::max(most, kValues[6 * row + i % 6]);
    CHECK_EQ(got[i], most);
  }
}

TEST(local_keeps_each_row) {
  Fixture f(2, kIpus);
  const auto t = rowsOf(f, kValues);
  CHECK(f.run(gcl::allReduceWithinReplica(f.graph, t, CollectiveOperator::LOCAL, f.prog)) ==
        kValues);
  CHECK_THROWS(popops::allReduce(f.graph, t, CollectiveOperator::MEAN, f.prog), "MEAN");
  const auto more = f.constant<float>({5, 1}, {1, 2, 3, 4, 5});
  CHECK_THROWS(popops::allReduce(f.graph, more, CollectiveOperator::ADD, f.prog), "at most 4");
}

TEST(operators_are_read_and_written) {
  for (const auto op :
       {CollectiveOperator::ADD, CollectiveOperator::LOGICAL_OR, CollectiveOperator::LOCAL}) {
    std::stringstream text;
    text << op;
    auto back = CollectiveOperator::MUL;
    text >> back;
    CHECK(back == op);
  }
  std::istringstream wrong("SUM");
  auto op = CollectiveOperator::ADD;
  wrong >> op;
  CHECK(wrong.fail());
  CHECK(popops::operationToCollectiveOperator(popops::Operation::SQUARE_ADD) ==
        CollectiveOperator::SQUARE_ADD);
  CHECK_THROWS(popops::operationToCollectiveOperator(popops::Operation::LOG_ADD), "LOG_ADD");
}

TEST(collectives_of_replicas_have_popops_names) {
  const auto device = Fixture::modelOf(2, 4);
  Graph graph(device.getTarget(), replication_factor(4));
  program::Sequence prog;
  auto t = graph.addVariable(FLOAT, {9}, VariableMappingMethod::LINEAR);
  const auto add = popops::Operation::ADD;
  CHECK_EQ(popops::replicatedAllReduce(graph, t, add, prog, "sum").dim(0), 9U);
  CHECK_EQ(popops::replicatedAllReduce(graph, graph, t, add, prog).dim(0), 9U);
  popops::replicatedAllReduceInPlace(graph, t, add, prog);
  auto out = graph.clone(t);
  popops::replicatedAllReduceWithOutput(graph, t, out, CollectiveOperator::MAX, prog);
  CHECK_EQ(popops::replicatedReduceScatter(graph, t, add, prog).dim(0), 3U);
  CHECK(popops::replicatedAllGather(graph, t, prog).shape() == (std::vector<std::size_t>{4, 9}));
  const auto each = graph.addVariable(FLOAT, {4, 2}, VariableMappingMethod::LINEAR);
  CHECK(popops::allToAllPersonalizedExchange(graph, each, prog).shape() == each.shape());
  CHECK_THROWS(popops::replicatedReduceScatter(graph, each, add, prog), "rank 1");
}

TEST(collectives_of_replicas_have_their_names_of_sdk_2) {
  const auto device = Fixture::modelOf(2, 4);
  Graph graph(device.getTarget(), replication_factor(4));
  program::Sequence prog;
  const auto t = graph.addVariable(FLOAT, {4, 2}, VariableMappingMethod::LINEAR);
  graph.createHostWrite("t", t);
  const gcl::CommGroup pairs(gcl::CommGroupType::CONSECUTIVE, 2);
  const OptionFlags options{{"useReplicatedImplementation", "true"}};
  const auto give = [&](const char* name, const Tensor& made) {
    const auto out = graph.clone(made);
    prog.add(program::Copy(made, out));
    graph.createHostRead(name, out);
  };
  give("sum", gcl::allReduce(graph, t, popops::Operation::ADD, prog, {"sum"}, options));
  give("pairs", gcl::allReduce(graph, t, CollectiveOperator::ADD, prog, pairs));
  give("parts", gcl::reduceScatter(graph, t.flatten(), CollectiveOperator::MAX, prog));
  give("all", gcl::allGather(graph, t, prog, {"all"}, options));
  give("exchanged", gcl::allToAll(graph, t, prog, {"exchange"}, options));
  const auto most = graph.clone(t);
  gcl::allReduceToDestination(graph, t, most, popops::Operation::MAX, prog);
  give("most", most);
  gcl::allReduceInPlace(graph, t, CollectiveOperator::MUL, prog, pairs);
  give("product", t);
  Engine engine(graph, prog);
  engine.load(device);
  std::vector<float> values(32);  // of replica r: r + 1 plus i / 8
  for (std::size_t i = 0; i < 32; ++i) values[i] = 1 + i / 8 + (i % 8) / 8.0f;
  engine.writeTensor("t", values.data(), values.data() + 32);
  engine.run();
  const auto got = [&](const char* name, std::size_t n) {
    std::vector<float> read(n);
    engine.readTensor(name, read.data(), read.data() + n);
    return read;
  };
  CHECK_EQ(got("sum", 32)[9], 10 + 4 / 8.0f);
  CHECK_EQ(got("pairs", 32)[17], 7 + 2 / 8.0f);
  CHECK_EQ(got("parts", 8)[3], 4 + 3 / 8.0f);
  CHECK_EQ(got("all", 128)[32 + 8], 2.0f);
  CHECK_EQ(got("exchanged", 32)[8 + 2], 2 + 2 / 8.0f);
  CHECK_EQ(got("most", 32)[5], 4 + 5 / 8.0f);
  CHECK_EQ(got("product", 32)[24], 12.0f);
}

TEST(each_ipu_of_a_replica_is_scattered_on_its_own) {
  const auto device = Fixture::modelOf(2, 4);
  Graph graph(device.getTarget(), replication_factor(2));
  program::Sequence prog;
  const auto add = CollectiveOperator::ADD;
  const auto data = graph.addVariable(FLOAT, {6});
  graph.setTileMapping(data.slice(0, 2), 0);  // 0, 1 and 5 on the first IPU
  graph.setTileMapping(data.slice(2, 5), 3);
  graph.setTileMapping(data.slice(5, 6), 1);
  const auto part = gcl::reduceScatterCrossReplica(graph, data, add, prog);
  const auto both =
      gcl::reduceScatterCrossReplica(graph, std::vector<Tensor>{data, data}, add, prog);
  const auto out = graph.addVariable(FLOAT, {4}, VariableMappingMethod::LINEAR);
  gcl::reduceScatterToDestinationCrossReplica(graph, data, out, add, prog);
  const auto old = popops::replicatedReduceScatter(graph, data, popops::Operation::ADD, prog);
  for (const auto& t : {part, old}) {
    CHECK_EQ(t.numElements(), 4U);  // two for 3 elements, on each IPU
    CHECK_EQ(ipuOf(graph, t.slice(0, 2)), 0U);
    CHECK_EQ(ipuOf(graph, t.slice(2, 4)), 1U);
  }
  graph.createHostWrite("data", data);
  graph.createHostRead("parts", concat({part, both[1], out, old}));
  Engine engine(graph, prog);
  engine.load(device);
  std::vector<float> values(12), parts(32);
  for (std::size_t i = 0; i < 12; ++i) values[i] = static_cast<float>(i < 6 ? i + 1 : 10 * (i - 5));
  engine.writeTensor("data", values.data(), values.data() + 12);
  engine.run();
  engine.readTensor("parts", parts.data(), parts.data() + 32);
  const std::vector<float> expected[] = {{11, 22, 33, 44}, {66, 0, 55, 0}};
  for (std::size_t i = 0; i < 32; ++i) CHECK_EQ(parts[i], expected[i / 16][i % 4]);
}

TEST(options_of_gcl_are_those_of_its_versions) {
  const auto device = Fixture::modelOf(2, 4);
  Graph graph(device.getTarget(), replication_factor(4));
  program::Sequence prog;
  const auto t = graph.addVariable(FLOAT, {8}, VariableMappingMethod::LINEAR);
  const auto reduce = [&](const OptionFlags& options) {
    gcl::allReduceInPlaceCrossReplica(graph, t, CollectiveOperator::ADD, prog, {"sum"}, options);
  };
  reduce({{"useSynclessCollectives", "hybrid"}, {"maxBytesPerTile", "35000"}});
  reduce({{"topology", "ring-on-line"}, {"link", "ipu-link"}, {"syncful.allToAll", "drop_off"}});
  CHECK_THROWS(reduce({{"topology", "star"}}), "one of auto, peripheral-ring");
  CHECK_THROWS(reduce({{"maxBytesPerTile", "many"}}), "a number");
  CHECK_THROWS(reduce({{"fast", "true"}}), "without effect, maxBytesPerTile");
}

TEST(slices_of_replicas_keep_their_grains) {
  Fixture f(3);
  const auto t = f.graph.addVariable(FLOAT, {13});
  f.graph.setTileMapping(t.slice(0, 9), 0);
  f.graph.setTileMapping(t.slice(9, 13), 2);
  gcl::CollectiveBalancedReorder reorder(f.graph, t, 2, {"t"}, false, 4);
  const auto slice = reorder.createReplicaSlice(HALF);
  CHECK_EQ(slice.numElements(), 8U + 4U);  // for 9 elements in grains of 4, and for 4
  const auto mapping = f.graph.getTileMapping(slice);
  CHECK_EQ(mapping[0][0].size(), 8U);
  CHECK_EQ(mapping[2][0].size(), 4U);
  const auto rearrange = reorder.getHostRearrangement();
  std::vector<float> values(13), slices(24), back(13);
  for (std::size_t i = 0; i < 13; ++i) values[i] = static_cast<float>(i);
  const auto bytes = [](std::vector<float>& v) { return reinterpret_cast<char*>(v.data()); };
  rearrange.rearrangeForCollective(bytes(values), bytes(slices), sizeof(float));
  rearrange.undoRearrangeForCollective(bytes(slices), bytes(back), sizeof(float));
  CHECK(back == values);
  CHECK_THROWS(gcl::CollectiveBalancedReorder(f.graph, t, 2, {}, false, 0), "grains of at least");
}
