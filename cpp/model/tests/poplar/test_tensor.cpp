#include <algorithm>
#include <numeric>
#include <utility>

#include "Check.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "poplar/Engine.hpp"
#include "poplar/Graph.hpp"
#include "poplar/IPUModel.hpp"
#include "poplar/Program.hpp"
#include "poputil/TileMapping.hpp"

using namespace poplar;
using Shape = std::vector<std::size_t>;

namespace {

/// A graph with an INT tensor 0, 1, 2, ... and functions that read views of it.
struct Numbers {
  Graph graph{IPUModel().createDevice().getTarget()};
  Tensor t;
  int reads = 0;

  explicit Numbers(Shape shape) {
    std::vector<int> values(std::accumulate(shape.begin(), shape.end(), 1ul, std::multiplies<>()));
    std::iota(values.begin(), values.end(), 0);
    t = graph.addVariable(INT, shape, VariableMappingMethod::LINEAR, "t");
    graph.setInitialValue<int>(t, ArrayRef<int>(values));
  }

  std::vector<int> read(const Tensor& view) { return read(program::Sequence(), view); }
  std::vector<int> read(const program::Program& first, const Tensor& view) {
    const Tensor out = graph.addVariable(INT, view.shape(), VariableMappingMethod::LINEAR, "out");
    const std::string handle = "out" + std::to_string(reads++);
    graph.createHostRead(handle, out);
    Engine engine(graph, program::Sequence({first, program::Copy(view, out)}));
    engine.load(Device(graph.getTarget()));
    engine.run();
    std::vector<int> result(view.numElements());
    engine.readTensor(handle, result.data(), result.data() + result.size());
    return result;
  }
};

std::vector<int> expect(std::initializer_list<int> values) { return values; }

void same(const std::vector<int>& got, const std::vector<int>& wanted) {
  CHECK_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK_EQ(got[i], wanted[i]);
}

}  // namespace

TEST(slice_takes_rows_and_columns) {
  Numbers n({3, 4});
  same(n.read(n.t.slice({1, 1}, {3, 3})), expect({5, 6, 9, 10}));
}

TEST(index_drops_the_dimension) {
  Numbers n({2, 3});
  CHECK_EQ(n.t[1].rank(), 1u);
  same(n.read(n.t[1]), expect({3, 4, 5}));
  same(n.read(n.t[1][2]), expect({5}));
}

TEST(dimShuffle_permutes) {
  Numbers n({2, 3});
  same(n.read(n.t.dimShuffle({1, 0})), expect({0, 3, 1, 4, 2, 5}));
  CHECK_THROWS(n.t.dimShuffle({0, 0}), "permutation");
}

TEST(reshape_of_a_transpose_keeps_row_major_order) {
  Numbers n({2, 3});
  same(n.read(n.t.transpose().reshape({6})), expect({0, 3, 1, 4, 2, 5}));
  same(n.read(n.t.transpose().reshape({2, 3}).transpose()), expect({0, 4, 3, 2, 1, 5}));
  CHECK_THROWS(n.t.reshape({5}), "6 elements");
}

TEST(reinterpret_reaches_the_parts_of_a_tensor) {
  Numbers n({2, 3});
  const Tensor joined = n.t.dimShuffle({1, 0}).reshape({6});
  const Tensor bits = n.graph.addVariable(UNSIGNED_INT, {6}, VariableMappingMethod::LINEAR, "b");
  const program::Copy copy(joined.reinterpret(UNSIGNED_INT), bits);
  same(n.read(copy, bits.reinterpret(INT)), expect({0, 3, 1, 4, 2, 5}));
}

TEST(a_clone_keeps_order_and_aliases_and_leaves_gaps_out) {
  Numbers n({6, 8});
  const Tensor repeated = n.t[2].reshape({1, 8}).broadcast(5, 0);
  for (const Tensor& view : {n.t, n.t.dimShuffle({1, 0}), n.t.slice(2, 5, 1), n.t.reverse(0),
                             n.t.slice({1, 2}, {5, 6}).transpose(), repeated,
                             n.t.slice(1, 4, 1).reverse(0), n.t.slice(2, 7, 1).subSample(2, 1)}) {
    const Tensor made = n.graph.clone(view, {}, TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES);
    CHECK(n.graph.impl().variables.back().elements == (view == repeated ? 8 : view.numElements()));
    CHECK(!made.intersectsWith(view));
    CHECK(n.graph.getTileMapping(made) == n.graph.getTileMapping(view));
    CHECK(n.read(program::Sequence(), view) == n.read(program::Copy(view, made), made));
  }
}

TEST(reverse_and_subSample) {
  Numbers n({5});
  same(n.read(n.t.reverse(0)), expect({4, 3, 2, 1, 0}));
  same(n.read(n.t.reverse(0).subSample(2, 0)), expect({4, 2, 0}));
}

TEST(broadcast_repeats_the_whole_dimension) {
  Numbers n({2, 2});
  same(n.read(n.t.broadcast(2, 1)), expect({0, 1, 0, 1, 2, 3, 2, 3}));
  same(n.read(n.t.broadcast(2, 0)), expect({0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST(concat_along_every_dimension) {
  Numbers n({2, 3});
  const Tensor a = n.t.slice(0, 1, 1);
  const Tensor b = n.t.slice(1, 3, 1);
  same(n.read(concat(b, a, 1)), expect({1, 2, 0, 4, 5, 3}));
  same(n.read(concat(n.t.slice(1, 2), n.t.slice(0, 1))), expect({3, 4, 5, 0, 1, 2}));
  CHECK_THROWS(concat(a, b, 0), "but for dimension 0");
}

TEST(slice_of_concat_finds_its_piece) {
  Numbers n({2, 3});
  const Tensor joined = concat(n.t, n.t.reverse(1), 1);
  same(n.read(joined.slice(3, 6, 1)), expect({2, 1, 0, 5, 4, 3}));
  same(n.read(joined.slice(2, 5, 1)), expect({2, 2, 1, 5, 5, 4}));
  same(n.read(joined.flatten().slice(1, 5)), expect({1, 2, 2, 1}));
}

TEST(copy_into_a_concat_writes_every_piece) {
  Numbers n({4});
  const Tensor a = n.graph.addVariable(INT, {2, 2}, VariableMappingMethod::LINEAR, "a");
  const Tensor b = n.graph.addVariable(INT, {2, 1}, VariableMappingMethod::LINEAR, "b");
  const Tensor source = n.graph.addConstant<int>(INT, {2, 3}, ArrayRef<int>({1, 2, 3, 4, 5, 6}));
  program::Sequence prog;
  prog.add(program::Copy(source, concat(a, b, 1)));
  n.graph.createHostRead("a", a);
  n.graph.createHostRead("b", b);
  Engine engine(n.graph, prog);
  engine.load(Device(n.graph.getTarget()));
  engine.run();
  std::vector<int> got(4);
  engine.readTensor("a", got.data(), got.data() + 4);
  same(got, expect({1, 2, 4, 5}));
  std::vector<int> last(2);
  engine.readTensor("b", last.data(), last.data() + 2);
  same(last, expect({3, 6}));
}

TEST(contiguous_regions_of_a_column) {
  Numbers n({2, 3});
  CHECK_EQ(n.t.getContiguousRegions().size(), 1u);
  const auto regions = n.t.slice(0, 2, 1).getContiguousRegions();
  CHECK_EQ(regions.size(), 2u);
  CHECK_EQ(regions[1].begin(), 2u);
  CHECK_EQ(regions[1].end(), 4u);
}

TEST(parallel_writeable_tells_aliases) {
  Numbers n({3});
  CHECK(n.t.isParallelWriteable());
  CHECK(!n.t.expand({0}).broadcast(2, 0).isParallelWriteable());
  CHECK(!concat(n.t, n.t).isParallelWriteable());
}

TEST(tile_mapping_follows_views) {
  Numbers n({4, 2});
  for (unsigned row = 0; row < 4; ++row) n.graph.setTileMapping(n.t[row], row);
  const auto mapping = n.graph.getTileMapping(n.t.transpose());
  CHECK_EQ(mapping[2].size(), 2u);
  CHECK_EQ(mapping[2][0].begin(), 2u);
  CHECK_EQ(mapping[2][1].begin(), 6u);
  CHECK_THROWS(n.graph.setTileMapping(n.t, 1472), "below 1472");
}

TEST(incomplete_mapping_is_refused) {
  Graph graph{Target()};
  const Tensor t = graph.addVariable(FLOAT, {4}, "t");
  graph.setTileMapping(t.slice(0, 2), 3);
  CHECK_THROWS(graph.getTileMapping(t), "mapped to a tile");
}

TEST(mappings_are_asked_of_the_tensors_own_graph) {
  Graph graph{Target()}, other{Target()};
  const Tensor t = other.addVariable(FLOAT, {4}, VariableMappingMethod::LINEAR, "t");
  CHECK_THROWS(graph.getTileMapping(t), "got one of another");
  CHECK_THROWS(graph.getTileMapping(Tensor()), "got an empty Tensor");
}

TEST(linear_mapping_is_even_and_in_grains) {
  Graph graph{Target()};
  const auto mapping = poputil::calcLinearTileMapping(graph, Shape{100000}, 32, 2);
  std::size_t total = 0;
  std::size_t worst = 0;
  for (const auto& tile : mapping) {
    std::size_t on_tile = 0;
    for (const auto& i : tile) on_tile += i.size();
    total += on_tile;
    worst = std::max(worst, on_tile);
  }
  CHECK_EQ(total, 100000u);
  CHECK_EQ(worst, 68u);
}

TEST(virtual_graph_uses_its_tiles_only) {
  Graph graph{Target()};
  Graph part = graph.createVirtualGraph(10, 14);
  const Tensor t = part.addVariable(FLOAT, {400}, VariableMappingMethod::LINEAR, "t");
  const auto mapping = graph.getTileMapping(t);
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    CHECK_EQ(!mapping[tile].empty(), tile >= 10 && tile < 14);
}

namespace {

/// The tiles that hold some of a new linear variable, in the order of its elements.
std::vector<unsigned> tilesOf(Graph& graph, std::size_t elements) {
  const Tensor t = graph.addVariable(FLOAT, {elements}, VariableMappingMethod::LINEAR, "t");
  std::vector<std::pair<std::size_t, unsigned>> found;
  const auto mapping = graph.getTileMapping(t);
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    for (const auto& part : mapping[tile]) found.emplace_back(part.begin(), tile);
  std::ranges::sort(found);
  std::vector<unsigned> tiles;
  for (const auto& [begin, tile] : found) tiles.push_back(tile);
  return tiles;
}

}  // namespace

TEST(layout_groups_begin_one_after_another) {
  Graph graph{Target()};
  using Tiles = std::vector<unsigned>;
  graph.impl().layout_group = 7;
  CHECK(tilesOf(graph, 64) == (Tiles{0, 1}));
  graph.impl().layout_group = 3;
  CHECK_EQ(tilesOf(graph, 32 * 1460).front(), 23u);  // the next of 64 places
  CHECK(tilesOf(graph, 96) == (Tiles{23, 24, 25}));
  graph.impl().layout_group = 4;
  CHECK(tilesOf(graph, 64) == (Tiles{23, 24}));  // 1,460 tiles take all places
  graph.impl().layout_group = 7;
  CHECK(tilesOf(graph, 64) == (Tiles{0, 1}));
  graph.impl().layout_group = 0;
  CHECK(tilesOf(graph, 64) == (Tiles{0, 1}));
}

TEST(a_layout_goes_round_the_end) {
  Graph graph{Target()};
  graph.impl().layout_group = 1;
  tilesOf(graph, 32 * 1440);  // 63 places
  graph.impl().layout_group = 2;
  const auto tiles = tilesOf(graph, 32 * 100);
  CHECK_EQ(tiles.size(), 100u);
  CHECK_EQ(tiles.front(), 1449u);
  CHECK_EQ(tiles[22], 1471u);
  CHECK_EQ(tiles[23], 0u);
  CHECK_EQ(tiles.back(), 76u);
}

TEST(what_needs_all_tiles_begins_at_tile_0_in_each_group) {
  Graph graph{Target()};
  for (const std::uint32_t group : {1, 2}) {
    graph.impl().layout_group = group;
    tilesOf(graph, 32);
    CHECK_EQ(tilesOf(graph, 32 * 1472).front(), 0u);
  }
}

TEST(parts_of_a_variable_are_mapped_as_a_whole_one) {
  Graph graph{Target()};
  Graph part = graph.createVirtualGraph(100, 200);
  graph.impl().layout_group = 1;
  part.addVariable(FLOAT, {32}, VariableMappingMethod::LINEAR, "first");
  graph.impl().layout_group = 2;
  const Tensor t = part.addVariable(FLOAT, {2, 64}, "t");
  for (std::size_t row : {0, 1}) poputil::mapTensorLinearly(part, t.slice(row, row + 1));
  const auto mapping = graph.getTileMapping(t);
  for (const unsigned tile : {101, 102}) CHECK_EQ(mapping[tile].size(), 2u);
  CHECK(mapping[100].empty());
}
