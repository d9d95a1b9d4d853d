// Mappings by use, to other graphs, and for the host.
#include <algorithm>
#include <popops/HostSliceTensor.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using poputil::TensorUseTracker;

namespace {

using Mapping = Graph::TileToTensorMapping;

std::size_t elementsOn(const Mapping& mapping, unsigned tile) {
  std::size_t n = 0;
  for (const auto& region : mapping[tile]) n += region.size();
  return n;
}

std::size_t tilesUsed(const Mapping& mapping) {
  return std::count_if(mapping.begin(), mapping.end(), [](const auto& r) { return !r.empty(); });
}

}  // namespace

TEST(elements_that_all_tiles_use_are_spread_evenly) {
  Fixture f(4);
  const auto t = f.graph.addVariable(FLOAT, {48});
  TensorUseTracker tracker(4);
  CHECK(tracker.empty());
  for (unsigned tile = 0; tile < 4; ++tile) tracker.add(f.graph, tile, t);
  CHECK(!tracker.empty());
  tracker.mapTensorsByUse(f.graph, 4, 4);
  const auto mapping = f.graph.getTileMapping(t);
  for (unsigned tile = 0; tile < 4; ++tile) {
    CHECK_EQ(elementsOn(mapping, tile), 12U);
    for (const auto& region : mapping[tile]) CHECK_EQ(region.begin() % 4, 0U);
  }
  CHECK_THROWS(tracker.add(f.graph, 4, t), "a tile below 4");
}

TEST(elements_lie_where_only_one_tile_uses_them) {
  Fixture f(4);
  const auto t = f.graph.addVariable(FLOAT, {4, 8});
  TensorUseTracker tracker(4);
  for (unsigned tile = 0; tile < 4; ++tile)
    tracker.add(f.graph, tile, t.slice(2 * tile, 2 * tile + 2, 1));
  TensorUseTracker copy(tracker);
  tracker = std::move(copy);
  tracker.mapTensorsByUse(f.graph, 1, 1);
  for (unsigned tile = 0; tile < 4; ++tile) {
    const auto mapping = f.graph.getTileMapping(t.slice(2 * tile, 2 * tile + 2, 1));
    CHECK_EQ(elementsOn(mapping, tile), 8U);
  }
}

TEST(a_grain_that_two_tiles_share_is_not_split_unless_tiles_are_fixed) {
  for (const bool is_fixed : {false, true}) {
    Fixture f(2);
    const auto t = f.graph.addVariable(FLOAT, {16});
    TensorUseTracker tracker(2);
    tracker.add(f.graph, 0, t.slice(0, 6));
    tracker.add(f.graph, 1, t.slice(6, 16));
    tracker.mapTensorsByUse(f.graph, 4, 1, false,
                            is_fixed ? TensorUseTracker::MappingMethod::ConstrainMappingToUsedTiles
                                     : TensorUseTracker::MappingMethod::None);
    const auto mapping = f.graph.getTileMapping(t);
    CHECK_EQ(elementsOn(mapping, 0), is_fixed ? 6U : 8U);
    CHECK_EQ(elementsOn(mapping, 1), is_fixed ? 10U : 8U);
  }
}

TEST(unused_elements_go_with_their_neighbours) {
  Fixture f(4);
  const auto t = f.graph.addVariable(FLOAT, {20});
  TensorUseTracker tracker(4);
  tracker.add(f.graph, 1, t.slice(2, 4));
  tracker.add(f.graph, 3, t.slice(14, 15));
  tracker.mapTensorsByUse(f.graph, 1, 1, true);
  const auto mapping = f.graph.getTileMapping(t);
  CHECK(mapping[1] == std::vector<Interval>({{0, 9}}));
  CHECK(mapping[3] == std::vector<Interval>({{9, 20}}));
}

TEST(a_halo_goes_with_a_neighbour_that_fewer_tiles_use) {
  Fixture f(4);
  const auto t = f.graph.addVariable(FLOAT, {14, 14});  // 2 x 2 windows of 8 x 8 by steps of 6
  TensorUseTracker tracker(4);
  for (unsigned y = 0; y < 2; ++y)
    for (unsigned x = 0; x < 2; ++x)
      tracker.add(f.graph, 2 * y + x, t.slice({6 * y, 6 * x}, {6 * y + 8, 6 * x + 8}));
  tracker.mapTensorsByUse(f.graph, 1, 1, false,
                          TensorUseTracker::MappingMethod::OptimizeHaloRegions);
  const auto mapping = f.graph.getTileMapping(t);
  for (unsigned tile = 0; tile < 4; ++tile) {
    CHECK_EQ(mapping[tile].size(), 7U);  // rows
    for (const auto& region : mapping[tile]) {
      CHECK_EQ(region.begin() % 14, tile % 2 == 0 ? 0U : 8U);
      CHECK_EQ(region.size(), tile % 2 == 0 ? 8U : 6U);
    }
  }
}

TEST(uses_resolved_apart_do_not_mix) {
  Fixture f(4);
  const auto t = f.graph.addVariable(FLOAT, {2, 16});
  TensorUseTracker tracker(4);
  for (unsigned half = 0; half < 2; ++half) {
    TensorUseTracker part(4);
    for (unsigned tile = 0; tile < 4; ++tile) part.add(f.graph, tile, t[half]);
    part.resolve(f.graph, 4, 4);
    tracker.add(std::move(part));
  }
  tracker.mapTensorsByUse(f.graph, 4, 4);
  for (unsigned half = 0; half < 2; ++half)
    for (unsigned tile = 0; tile < 4; ++tile)
      CHECK_EQ(elementsOn(f.graph.getTileMapping(t[half]), tile), 4U);
}

TEST(a_clone_in_another_graph_is_mapped_alike) {
  Fixture f(8);
  auto first = f.graph.createVirtualGraph(0, 4);
  auto second = f.graph.createVirtualGraph(4, 8);
  auto single = f.graph.createVirtualGraph(4, 5);
  const auto t = first.addVariable(FLOAT, {1024});
  poputil::mapTensorLinearly(first, t);
  const auto clone = poputil::cloneToGraph(first, second, t, "clone");
  CHECK(first.getTileMapping(t) == second.getTileMapping(clone));
  auto whole = f.graph.getTileMapping(clone);
  std::rotate(whole.begin(), whole.begin() + 4, whole.end());
  CHECK(whole == f.graph.getTileMapping(t));
  CHECK_THROWS(poputil::cloneToGraph(first, single, t), "larger virtual graph");
}

TEST(tensors_for_the_host_lie_in_packets) {
  Fixture f(16);
  for (const bool is_read : {false, true}) {
    const std::size_t packet = 256;  // floats in 1,024 bytes
    const auto mapOf = [&](std::size_t rows, std::size_t length) {
      const auto made = popops::createHostSliceableTensor(f.graph, FLOAT, {rows, length}, is_read);
      for (std::size_t row = 0; row < rows; ++row) {  // each index lies where its row begins
        const auto begin = f.graph.getTileMapping(made.tensor[row][0]);
        CHECK(begin == f.graph.getTileMapping(made.indices[row]));
      }
      return f.graph.getTileMapping(made.tensor);
    };
    CHECK_EQ(elementsOn(mapOf(1, packet - 1), 0), packet - 1);
    CHECK_EQ(tilesUsed(mapOf(2, 10)), 2U);
    CHECK_EQ(tilesUsed(mapOf(6, packet + 6)), 12U);
    const auto full = mapOf(1, packet * 17);
    CHECK(full[0] == std::vector<Interval>({{0, 2 * packet}}));
    for (unsigned tile = 1; tile < 16; ++tile) CHECK_EQ(elementsOn(full, tile), packet);
    const auto t = popops::createHostTransferableTensor(f.graph, FLOAT, {2, 3, packet}, is_read);
    CHECK(t.shape() == (std::vector<std::size_t>{2, 3, packet}));
    CHECK_EQ(tilesUsed(f.graph.getTileMapping(t)), 6U);
  }
}

TEST(packets_for_the_host_go_to_different_exchange_blocks) {
  Fixture f(128, 1);
  const auto t = popops::createHostTransferableTensor(f.graph, FLOAT, {32 * 256}, false);
  const auto mapping = f.graph.getTileMapping(t);
  CHECK_EQ(tilesUsed(mapping), 32U);
  std::vector<unsigned> packets(32);
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    if (!mapping[tile].empty()) ++packets[tile % 64 / 4 * 2 + tile % 2];
  for (const unsigned of_block : packets) CHECK_EQ(of_block, 1U);
}

TEST(tensors_for_the_host_follow_those_before_them) {
  Fixture f(16);
  constexpr std::size_t kPacket = 256, kBytes = 1024;
  for (const std::size_t before : {0, 1, 5, 16, 21}) {
    for (const std::size_t bytes : {before * kBytes, before * kBytes - (before > 0)}) {
      const auto mapOf = [&](const Tensor& t) { return f.graph.getTileMapping(t); };
      const auto one = mapOf(
          popops::createHostTransferableTensor(f.graph, FLOAT, {kPacket}, true, bytes, "one"));
      CHECK_EQ(elementsOn(one, before % 16), kPacket);
      const auto row =
          popops::createHostSliceableTensor(f.graph, FLOAT, {1, kPacket}, false, bytes);
      CHECK(mapOf(row.tensor) == one);
      CHECK_EQ(elementsOn(mapOf(row.indices), before % 16), 1U);
      const auto all =
          popops::createHostTransferableTensor(f.graph, FLOAT, {16 * kPacket}, false, bytes);
      CHECK_EQ(tilesUsed(mapOf(all)), 16U);
    }
  }
}

TEST(rebalancing_moves_what_a_tile_has_too_much) {
  Fixture f(4, 1);
  for (const unsigned grain : {1u, 4u, 7u}) {
    for (const std::size_t begin : {0, 100, 333}) {
      const auto t = f.graph.addVariable(FLOAT, {1000});
      f.graph.setTileMapping(t, 3);
      f.graph.setTileMapping(t.slice(begin, begin + 500), 1);
      poputil::rebalanceTensor(f.graph, t, 0, grain, 1000);  // not worth it
      CHECK_EQ(tilesUsed(f.graph.getTileMapping(t)), 2U);
      poputil::rebalanceTensor(f.graph, t, 0, grain, 0);
      CHECK_EQ(poputil::getTileImbalance(f.graph, t, 0, grain), 0U);
      CHECK(f.graph.getTileMapping(t[begin]) != f.graph.getTileMapping(t[(begin + 600) % 1000]));
      const auto mapping = f.graph.getTileMapping(t);
      std::size_t mapped = 0;
      for (unsigned tile = 0; tile < 4; ++tile) mapped += elementsOn(mapping, tile);
      CHECK_EQ(mapped, 1000U);
    }
  }
  const auto few = f.graph.addVariable(FLOAT, {40});
  f.graph.setTileMapping(few, 2);
  poputil::rebalanceTensor(f.graph, few);  // 128 bytes a tile are 32 floats
  CHECK_EQ(elementsOn(f.graph.getTileMapping(few), 2), 32U);
}

TEST(outputs_are_mapped_as_the_input_that_fits) {
  Fixture f(13, 1);
  const auto mapped = [&](std::size_t grain) {
    const auto t = f.graph.addVariable(FLOAT, {1000});
    for (std::size_t i = 0; i < 1000; i += grain)
      f.graph.setTileMapping(t.slice(i, i + grain), i / grain % 13);
    return t;
  };
  const auto even = mapped(1);     // at most 77 a tile
  const auto grained = mapped(4);  // at most 80
  const auto out = f.graph.addVariable(FLOAT, {1000});
  const auto mappingFor = [&](const std::vector<Tensor>& inputs, unsigned grain, unsigned least) {
    poputil::mapOutputForElementWiseOp(f.graph, inputs, out, grain, least);
    return f.graph.getTileMapping(out);
  };
  for (const auto& inputs : {std::vector<Tensor>{even, grained}, {grained, even}}) {
    CHECK(mappingFor(inputs, 1, 0) == f.graph.getTileMapping(even));
    CHECK(mappingFor(inputs, 4, 0) == f.graph.getTileMapping(grained));
    for (const unsigned grain : {1u, 4u}) {
      const auto mapping = mappingFor(inputs, grain, 100);
      for (unsigned tile = 0; tile < 13; ++tile) {
        const std::size_t n = elementsOn(mapping, tile);
        CHECK(n == 0 || (n >= 100 * grain && n % grain == 0));
      }
    }
  }
  const auto alias = even.slice(0, 250).broadcast(4, 0);
  CHECK(mappingFor({alias}, 1, 0) != f.graph.getTileMapping(alias));
}

TEST(trackers_have_the_forms_without_a_method) {
  Fixture f(4, 1);
  const auto mapBy = [&](auto... how) {
    TensorUseTracker tracker(4);
    const auto t = f.graph.addVariable(FLOAT, {14, 14});
    for (unsigned tile = 0; tile < 4; ++tile) {
      const std::size_t x = tile % 2 * 6, y = tile / 2 * 6;
      tracker.add(f.graph, tile, t.slice(x, x + 8, 1).slice(y, y + 8, 0));
    }
    tracker.mapTensorsByUse(f.graph, 1, 1, how...);
    return f.graph.getTileMapping(t);
  };
  using Method = TensorUseTracker::MappingMethod;
  CHECK(mapBy(true, false) == mapBy(false, Method::OptimizeHaloRegions));
  CHECK(mapBy(false, true) == mapBy(true));
  CHECK(mapBy(true, false) != mapBy(false, false));
}

TEST(copies_keep_aliases_when_asked) {
  using poplar::TensorCloneMethod;
  Fixture f(4, 2);
  const auto t = f.graph.addVariable(FLOAT, {6}, VariableMappingMethod::LINEAR);
  f.graph.setInitialValue(t, poplar::ArrayRef<float>({1, 2, 3, 4, 5, 6}));
  const auto view = concat(t.slice(2, 5), t.slice(0, 4));  // 2 and 3 twice
  const auto count = [&](const Tensor& x) {
    std::size_t n = 0;
    for (const auto& regions : f.graph.getSortedContiguousRegions(x, {{0, x.numElements()}}, true))
      for (const auto& region : regions) n += region.size();
    return n;
  };
  const auto keep = TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES;
  const auto apart = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES;
  const auto twin = poputil::duplicate(f.graph, view, f.prog, {}, keep);
  const auto plain = poputil::duplicate(f.graph, view, f.prog, {}, apart);
  const auto there = poputil::copyToIpu(f.graph, view, f.prog, 1, {}, keep);
  const auto clone = f.graph.clone(FLOAT, view, {}, keep);
  CHECK_EQ(count(view), 5U);
  CHECK_EQ(count(twin), 5U);
  CHECK_EQ(count(there), 5U);
  CHECK_EQ(count(clone), 5U);
  CHECK_EQ(count(plain), 7U);
  const auto mapping = f.graph.getTileMapping(there);
  for (unsigned tile = 0; tile < 4; ++tile) CHECK(mapping[tile].empty());
  const std::vector<float> wanted{3, 4, 5, 1, 2, 3, 4};
  auto thrice = wanted;
  for (int i = 0; i < 2; ++i) thrice.insert(thrice.end(), wanted.begin(), wanted.end());
  CHECK(f.run(concat({twin, plain, there})) == thrice);
}

TEST(a_clone_of_a_concatenation_lies_where_its_parts_do) {
  Fixture f(8);
  const Tensor a = f.constant<float>({2, 2}, std::vector<float>{1, 2, 3, 4});
  const Tensor b = f.constant<float>({2, 1}, std::vector<float>{5, 6});
  f.graph.setTileMapping(a, 5);
  f.graph.setTileMapping(b, 7);
  const Tensor both = concat(a, b, 1);
  const Tensor clone = f.graph.clone(both);
  CHECK(f.graph.getTileMapping(clone[0][0])[5].size() == 1);
  CHECK(f.graph.getTileMapping(clone[1][2])[7].size() == 1);
  f.prog.add(program::Copy(both, clone));
  CHECK(f.run<float>(clone) == (std::vector<float>{1, 2, 5, 3, 4, 6}));
}
