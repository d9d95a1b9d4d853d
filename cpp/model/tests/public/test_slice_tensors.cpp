#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <poplar/Engine.hpp>
#include <poplar/MetadataCreation.hpp>
#include <popops/Cast.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Gather.hpp>
#include <poputil/TileMapping.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

/// The mapping of tables and slices, their plans, and the options of slices.
using namespace poplar;
using Dims = std::vector<std::size_t>;

namespace {

constexpr unsigned kTiles = 8;

/// The tile of each element.
std::vector<unsigned> tilesOf(const Graph& graph, const Tensor& t) {
  std::vector<unsigned> tiles(t.numElements(), std::numeric_limits<unsigned>::max());
  const auto mapping = graph.getTileMapping(t);
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    for (const auto& region : mapping[tile])
      std::fill(tiles.begin() + static_cast<std::ptrdiff_t>(region.begin()),
                tiles.begin() + static_cast<std::ptrdiff_t>(region.end()), tile);
  return tiles;
}

/// Elements on each tile that has some.
std::vector<std::size_t> loads(const Graph& graph, const Tensor& t) {
  std::vector<std::size_t> counts;
  for (const auto& regions : graph.getTileMapping(t)) {
    std::size_t n = 0;
    for (const auto& region : regions) n += region.size();
    if (n) counts.push_back(n);
  }
  return counts;
}

std::string constraints(std::size_t lookups, std::size_t rows, std::size_t columns,
                        std::size_t grain = 1, std::size_t groups = 1) {
  std::ostringstream text;
  text << R"({"lookupSplit": )" << lookups << R"(, "slicedDimSplit": )" << rows
       << R"(, "unslicedDimSplit": )" << columns << R"(, "unslicedGrainSize": )" << grain
       << R"(, "groupSplit": )" << groups << "}";
  return text.str();
}

std::vector<float> counted(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

std::size_t parts(std::size_t size, std::size_t n) { return (size + n - 1) / n; }

}  // namespace

TEST(a_sliceable_tensor_has_all_of_a_slices_place_on_one_tile) {
  Fixture f(kTiles);
  struct Case {
    Dims shape, dims;
    std::size_t grain, each;  // elements of a slice on a tile
  };
  const Case cases[] = {{{5, 20}, {0}, 0, 3},         {{20, 5}, {1}, 0, 3}, {{5, 4, 2}, {0}, 0, 1},
                        {{3, 2, 2, 5}, {1, 2}, 0, 2}, {{5, 20}, {0}, 7, 7}, {{2, 3}, {0, 1}, 0, 1},
                        {{100, 8 * 16}, {0}, 2, 16}};
  for (const auto& c : cases) {
    const Tensor t = popops::createSliceableTensor(f.graph, FLOAT, c.shape, c.dims,
                                                   Dims(c.dims.size(), 1), c.grain);
    CHECK(t.shape() == c.shape);
    const auto tiles = tilesOf(f.graph, t);
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      std::size_t rest = i, number = 0, stride = 1;  // of the element among those of a slice
      for (std::size_t d = c.shape.size(); d-- > 0; rest /= c.shape[d]) {
        if (std::find(c.dims.begin(), c.dims.end(), d) != c.dims.end()) continue;
        number += rest % c.shape[d] * stride;
        stride *= c.shape[d];
      }
      CHECK_EQ(tiles[i], number / c.each);
    }
  }
  // Whole words: four of one byte.
  const Tensor bytes = popops::createSliceableTensor(f.graph, UNSIGNED_CHAR, {5, 20}, {0}, {1}, 4);
  CHECK(loads(f.graph, bytes) == (Dims{20, 20, 20, 20, 20}));
  const Tensor linear = f.graph.addVariable(FLOAT, {40});
  poputil::mapTensorLinearly(f.graph, linear);
  CHECK(tilesOf(f.graph, popops::createSliceableTensor(f.graph, FLOAT, {40}, {}, {})) ==
        tilesOf(f.graph, linear));
  CHECK_THROWS(popops::createSliceableTensor(f.graph, FLOAT, {3}, {0, 0}, {1, 1}), "once");
}

TEST(tiles_have_their_elements_of_all_slices) {
  Fixture f(kTiles);
  const Tensor t = popops::createSliceableTensor(f.graph, FLOAT, {9, 6}, {0}, {1});
  const Tensor five = popops::createSliceTensor(f.graph, t, {0}, {1}, 5);
  CHECK(five.shape() == (Dims{5, 1, 6}));
  CHECK(loads(f.graph, five) == Dims(6, 5));
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(tilesOf(f.graph, five[i]) == (std::vector<unsigned>{0, 1, 2, 3, 4, 5}));
  // One slice lies as the first of its table.
  const Tensor table = f.graph.addVariable(FLOAT, {9, 6});
  poputil::mapTensorLinearly(f.graph, table, 3, 3);
  const Tensor one = popops::createSliceTensor(f.graph, table, {0}, {1}, 1);
  CHECK(tilesOf(f.graph, one) == tilesOf(f.graph, table[0]));
  CHECK_THROWS(popops::createSliceTensor(f.graph, table, {0}, {10}, 2), "a size within the shape");
  const auto indices = popops::createIndicesTensor(f.graph, {0}, 70, {}, {});
  CHECK(indices.elementType() == UNSIGNED_INT && indices.shape() == (Dims{70, 1}));
  for (const auto n : loads(f.graph, indices)) CHECK(n >= 32);
}

TEST(copies_of_a_slice_lie_as_it_does) {
  Fixture f(64);
  Tensor slice = f.graph.addVariable(HALF, {20, 10, 10}).dimShuffle({2, 0, 1});
  poputil::mapTensorLinearly(f.graph, slice, 1, 1);
  const Tensor t = popops::createSliceableTensorFromSlice(f.graph, slice, {0, 1}, {2, 3});
  CHECK(t.shape() == (Dims{20, 60, 10}));
  Tensor reference = slice.flatten();
  std::vector<Tensor> copies;
  std::vector<Tensor*> pointers;
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      copies.push_back(t.slice({i * 10, j * 20, 0}, {i * 10 + 10, j * 20 + 20, 10}).flatten());
  for (auto& copy : copies) pointers.push_back(&copy);
  f.graph.reorderToSimplify(&reference, pointers);
  const auto wanted = f.graph.getTileMapping(reference);
  for (const auto& copy : copies) {
    const auto mapping = f.graph.getTileMapping(copy);
    CHECK(mapping == wanted);
    for (const auto& regions : mapping)
      if (!regions.empty()) CHECK_EQ(f.graph.getSortedContiguousRegions(copy, regions).size(), 1u);
  }
  CHECK_THROWS(popops::createSliceableTensorFromSlice(f.graph, slice, {0}, {2, 3}), "a number");
}

TEST(what_is_gathered_lies_as_slices_do) {
  struct Case {
    Dims input;
    std::vector<int> indices;
    Dims indices_shape;
    std::size_t vector_dim;
    Dims offset_dims, sizes, collapsed;
    std::vector<unsigned> map;
    Dims wanted;  // elements on each tile
  };
  const Case cases[] = {
      {{3, 3}, {0, 2}, {2}, 1, {1}, {1, 3}, {0}, {0}, {2, 2, 2}},
      {{3, 3}, {0, 2}, {2}, 1, {0}, {3, 1}, {1}, {1}, {2, 2, 2}},
      {{3, 3}, {0, 2, 2, 1}, {2, 2}, 2, {1}, {3, 1}, {1}, {1}, {4, 4, 4}},
      {{3, 3}, {0, 2, 2, 1, 1, 2, 2, 0}, {2, 2, 2}, 2, {}, {1, 1}, {0, 1}, {0, 1}, {4}},
      {{3, 3, 2}, {0, 0, 1, 0}, {2, 2}, 0, {1}, {1, 1, 2}, {0, 1}, {0, 1}, {2, 2}},
      {{4, 2}, {1}, {1}, 1, {0, 1}, {2, 2}, {}, {0}, {2, 2}}};
  for (const auto& c : cases) {
    Fixture f(4);
    const Tensor in = popops::createGatherInput(f.graph, FLOAT, c.input, c.sizes, c.map);
    CHECK(in.shape() == c.input);
    const Tensor at = f.constant<int>(c.indices_shape, c.indices);
    const Tensor out = popops::gather(f.graph, in, at, c.vector_dim, c.offset_dims, c.sizes,
                                      c.collapsed, c.map, f.prog);
    CHECK(loads(f.graph, out) == c.wanted);
  }
  Fixture f(kTiles);
  const Tensor in = popops::createGatherInput(f.graph, FLOAT, {2, 7, 3}, 1, {4});
  CHECK(in.shape() == (Dims{2, 7, 3}));
  // Even entries of the axis lie on other tiles than odd ones.
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t e = 2; e < 7; ++e)
        CHECK_EQ(tilesOf(f.graph, in[i][e][k])[0], tilesOf(f.graph, in[i][e % 2][k])[0]);
  CHECK(tilesOf(f.graph, in[0][0][0]) != tilesOf(f.graph, in[0][1][0]));
  CHECK_THROWS(popops::createGatherInput(f.graph, FLOAT, {2, 3}, 2), "an axis of the shape");
}

// Long: one table of plans, and what follows from each.
TEST(tensors_of_a_plan_lie_as_it_says) {
  struct Case {
    std::size_t lookups, rows, columns, grain;
  };
  constexpr std::size_t kRows = 11, kColumns = 10, kLookups = 9;
  for (const auto& c : {Case{1, 1, 1, 1}, Case{1, 1, 3, 1}, Case{1, 4, 1, 1}, Case{3, 1, 1, 1},
                        Case{2, 2, 2, 1}, Case{2, 1, 4, 2}, Case{1, 2, 2, 5}}) {
    Fixture f(kTiles);
    const OptionFlags options{
        {"planConstraints", constraints(c.lookups, c.rows, c.columns, c.grain)}};
    const auto plan =
        popops::embedding::plan(f.graph, FLOAT, kRows, kColumns, {kLookups, 2}, options);
    const Tensor table =
        popops::createSliceableTensor(f.graph, FLOAT, {kRows, kColumns}, {0}, {1}, plan, options);
    const Tensor slices = popops::createSliceTensor(f.graph, FLOAT, {kRows, kColumns}, {0}, {1},
                                                    kLookups, plan, options);
    CHECK(table.shape() == (Dims{kRows, kColumns}));
    CHECK(slices.shape() == (Dims{kLookups, 1, kColumns}));
    const auto& target = f.graph.getTarget();
    const std::size_t bus =
        target.getExchangeBytesPerCycle() * target.getTilesPerSharedExchangeBus() / 4;
    const std::size_t grain = std::lcm(c.grain, bus);
    const std::size_t height = parts(kRows, c.rows), width = parts(kColumns, c.columns);
    // Element by element: its part, its number in the part, and whose share that number is.
    const auto tiles = tilesOf(f.graph, table);
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t j = 0; j < kColumns; ++j) {
        const std::size_t row = i / height, column = j / width;
        const std::size_t own_height = std::min(height, kRows - row * height);
        const std::size_t own_width = std::min(width, kColumns - column * width);
        const std::size_t number = i % height * own_width + j % width;
        const std::size_t share = parts(parts(own_height * own_width, grain), c.lookups) * grain;
        CHECK_EQ(tiles[i * kColumns + j], (number / share * c.rows + row) * c.columns + column);
      }
    const auto slice_tiles = tilesOf(f.graph, slices);
    const std::size_t first = parts(kLookups, c.lookups), second = parts(first, c.rows);
    for (std::size_t i = 0; i < kLookups; ++i)
      for (std::size_t j = 0; j < kColumns; ++j)
        CHECK_EQ(slice_tiles[i * kColumns + j],
                 (i / first * c.rows + i % first / second) * c.columns + j / width);
    // Results computed with them do not depend on their mapping.
    f.graph.setInitialValue(table, counted(kRows * kColumns));
    std::vector<unsigned> at(kLookups);
    for (unsigned i = 0; i < kLookups; ++i) at[i] = i * 7 % kRows;
    const Tensor indices = popops::createIndicesTensor(f.graph, {0}, kLookups, plan, options);
    f.graph.setInitialValue(indices, at);
    const Tensor found =
        popops::multiSlice(f.graph, table, indices, {0}, {1}, f.prog, plan, options);
    CHECK(tilesOf(f.graph, found) == slice_tiles);
    const Tensor half = f.constant<float>({}, {0.5f});
    popops::multiUpdateAdd(f.graph, table, found, indices, half, {0}, {1}, f.prog, plan, options);
    const auto got = f.run(concat(found.flatten(), table.flatten()));
    auto wanted = counted(kRows * kColumns);
    for (std::size_t i = 0; i < kLookups; ++i)
      for (std::size_t j = 0; j < kColumns; ++j) {
        const float x = static_cast<float>(at[i] * kColumns + j);
        CHECK_EQ(got[i * kColumns + j], x);
        wanted[at[i] * kColumns + j] += 0.5f * x;
      }
    for (std::size_t i = 0; i < wanted.size(); ++i)
      CHECK_EQ(got[kLookups * kColumns + i], wanted[i]);
  }
}

TEST(groups_of_a_plan_lie_on_tiles_of_their_own) {
  Fixture f(kTiles);
  const OptionFlags options{{"planConstraints", constraints(1, 2, 2, 1, 2)}};
  const auto plan = popops::embedding::plan(f.graph, HALF, 2, 6, 4, {5}, options);
  const Tensor table =
      popops::createGroupedSliceableTensor(f.graph, HALF, 2, {4, 6}, {1}, {1}, plan, options);
  CHECK(table.shape() == (Dims{2, 4, 6}));
  const auto first = tilesOf(f.graph, table[0]), second = tilesOf(f.graph, table[1]);
  CHECK_EQ(*std::max_element(first.begin(), first.end()), 3u);
  for (std::size_t i = 0; i < first.size(); ++i) CHECK_EQ(second[i], first[i] + 4);
  const Tensor slices =
      popops::createGroupedSliceTensor(f.graph, HALF, 2, {4, 6}, {1}, {1}, 5, plan, options);
  CHECK(slices.shape() == (Dims{2, 5, 4, 1}));
}

TEST(plans_keep_within_the_tiles_and_their_memory) {
  Fixture f(64);
  const auto loadsOf = [&](const OptionFlags& options, std::size_t rows, std::size_t columns,
                           std::size_t lookups) {
    const auto plan = popops::embedding::plan(f.graph, FLOAT, rows, columns, {lookups}, options);
    return loads(f.graph, popops::createSliceableTensor(f.graph, FLOAT, {rows, columns}, {0}, {1},
                                                        plan, options));
  };
  // A large table is spread over most tiles, evenly.
  const auto large = loadsOf({}, 5000, 64, 100);
  CHECK(large.size() >= 48);
  CHECK(*std::max_element(large.begin(), large.end()) <= 2 * 5000 * 64 / 64);
  CHECK(!loadsOf({{"usedForUpdate", "false"}, {"availableMemoryProportion", "0"}}, 5000, 64, 100)
             .empty());  // no plan fits: as without a limit
  for (const char* operation : {"none", "add", "max"})
    CHECK(!loadsOf({{"operationForUpdate", operation}, {"indicesAreSorted", "true"}}, 100, 3, 7)
               .empty());
  CHECK(!loadsOf({{"indicesDistribution", "onePoint"}, {"partialType", "float"}}, 2, 1, 1).empty());
  const auto plan = [&](const OptionFlags& options) {
    return popops::embedding::plan(f.graph, FLOAT, 100, 8, {4}, options);
  };
  CHECK_THROWS(plan({{"usedForSlice", "false"}, {"usedForUpdate", "false"}}), "got neither");
  CHECK_THROWS(plan({{"colour", "red"}}), "unknown option 'colour'");
  CHECK_THROWS(plan({{"availableMemoryProportion", "2"}}), "availableMemoryProportion");
  CHECK_THROWS(plan({{"planConstraints", constraints(1, 1, 9)}}), "planConstraints");
  CHECK_THROWS(plan({{"planConstraints", R"({"split": 2})"}}), "split = 2");
  CHECK_THROWS(plan({{"planConstraints", R"({"useOrderingInfo": true})"}}), "indicesAreSorted");
  CHECK(plan({}) == plan({{"validateIndices", "true"}}));
  CHECK(plan({}) != popops::SlicePlan() && popops::SlicePlan() < plan({}));
  Fixture small(2);
  CHECK_THROWS(popops::createSliceableTensor(small.graph, FLOAT, {100, 8}, {0}, {1},
                                             plan({{"planConstraints", constraints(1, 4, 1)}}), {}),
               "at most 2 tiles");
}

TEST(indices_outside_are_zero_padding_or_an_error) {
  const std::vector<unsigned> at{2, 3, 9, 0};
  const auto sliced = [&](const OptionFlags& options, bool is_constant) {
    Fixture f(kTiles);
    const Tensor t = f.constant<float>({3, 2}, {1, 2, 3, 4, 5, 6});
    const Tensor rows = is_constant
                            ? popops::multiSlice(f.graph, t, at, 0, f.prog, {}, options)
                            : popops::multiSlice(f.graph, t, f.constant<unsigned>({4, 1}, at), {0},
                                                 {1}, f.prog, {}, options);
    return f.run(rows);
  };
  for (const bool is_constant : {false, true}) {
    CHECK(sliced({{"remapOutOfBoundIndices", "true"}}, is_constant) ==
          (std::vector<float>{5, 6, 1, 2, 1, 2, 1, 2}));
    CHECK(sliced({{"remapOutOfBoundIndices", "true"}, {"paddingIndexUsed", "true"}}, is_constant) ==
          (std::vector<float>{5, 6, 0, 0, 1, 2, 1, 2}));
  }
  // Constant offsets outside give zeros in any case.
  CHECK(sliced({}, true) == (std::vector<float>{5, 6, 0, 0, 0, 0, 1, 2}));
  CHECK_THROWS(sliced({{"validateIndices", "true"}}, false), "validateIndices");
  CHECK_THROWS(sliced({{"colour", "red"}}, false), "unknown option");

  const auto updated = [&](const OptionFlags& options) {
    Fixture f(kTiles);
    const Tensor t = f.constant<float>({3, 2}, {0, 0, 0, 0, 0, 0});
    const Tensor s = f.constant<float>({4, 1, 2}, counted(8));
    const Tensor scale = f.constant<float>({}, {1});
    popops::multiUpdateAdd(f.graph, t, s, f.constant<unsigned>({4, 1}, at), scale, {0}, {1}, f.prog,
                           {}, options);
    return f.run(t);
  };
  CHECK(updated({{"remapOutOfBoundIndices", "true"}}) ==
        (std::vector<float>{2 + 4 + 6, 3 + 5 + 7, 0, 0, 0, 1}));
  CHECK(updated({{"remapOutOfBoundIndices", "true"}, {"paddingIndexUsed", "true"}}) ==
        (std::vector<float>{4 + 6, 5 + 7, 0, 0, 0, 1}));
}

TEST(one_slice_has_the_same_options) {
  const OptionFlags remap{{"remapOutOfBoundIndices", "true"}};
  const OptionFlags padding{{"paddingIndexUsed", "true"}, {"validateIndices", "true"}};
  struct Case {
    unsigned offset;
    OptionFlags options;
    std::vector<float> slice, updated;
  };
  const Case cases[] = {{3, {}, {1, 2}, {7, 8, 3, 4, 5, 6}},
                        {3, remap, {1, 2}, {7, 8, 3, 4, 5, 6}},
                        {3, padding, {0, 0}, {1, 2, 3, 4, 5, 6}},
                        {1, padding, {3, 4}, {1, 2, 7, 8, 5, 6}}};
  for (const auto& c : cases) {
    Fixture f(kTiles);
    const Tensor t = f.constant<float>({3, 2}, {1, 2, 3, 4, 5, 6});
    const Tensor at = f.constant<unsigned>({1}, {c.offset});
    const Tensor s = popops::dynamicSlice(f.graph, t, at, {0}, {1}, f.prog, {}, c.options);
    popops::dynamicUpdate(f.graph, t, f.constant<float>({1, 2}, {7, 8}), at, {0}, {1}, f.prog, {},
                          c.options);
    auto wanted = c.slice;
    wanted.insert(wanted.end(), c.updated.begin(), c.updated.end());
    CHECK(f.run(concat(s.flatten(), t.flatten())) == wanted);
  }
  Fixture f(kTiles);
  const Tensor t = f.constant<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor at = f.constant<unsigned>({1}, {4});
  const Tensor s = popops::dynamicSlice(f.graph, t, at, {0}, {1}, f.prog, {}, padding);
  CHECK_THROWS(f.run(s), "validateIndices");
}

TEST(slices_of_quarters_keep_format_and_scale) {
  using Format = QuarterMetadata::Format;
  Fixture f(kTiles);
  const Tensor metadata = createVariableMetadataTensor(f.graph, Format::F152, 3);
  const auto values = counted(2 * 3 * 4);
  const Tensor table =
      popops::cast(f.graph, f.constant<float>({2, 3, 4}, values), QUARTER, metadata, f.prog);
  const Tensor exact = popops::cast(f.graph, table, FLOAT, f.prog);
  const auto plan = popops::embedding::plan(f.graph, QUARTER, 2, 3, 4, {2}, {});
  const Tensor at = f.constant<unsigned>({2, 2, 1}, {2, 0, 1, 1});
  const Tensor groups = popops::groupedMultiSlice(f.graph, table, at, {0}, {1}, f.prog, plan, {});
  const Tensor one = popops::multiSlice(f.graph, table[0], at[0], {0}, {1}, f.prog, {},
                                        {{"paddingIndexUsed", "true"}});
  const Tensor slice = popops::dynamicSlice(f.graph, table[1], at[0][0], {0}, {1}, f.prog);
  const auto floats = [&](const Tensor& t) {
    return popops::cast(f.graph, t, FLOAT, f.prog).flatten();
  };
  const auto got = f.run(concat({exact.flatten(), floats(groups), floats(one), floats(slice)}));
  const std::size_t rows[] = {2, 0, 3 + 1, 3 + 1, 2, 0, 3 + 2};
  for (std::size_t i = 0; i < 7; ++i)
    for (std::size_t k = 0; k < 4; ++k) CHECK_EQ(got[24 + 4 * i + k], got[4 * rows[i] + k]);
}

TEST(a_slice_of_a_sliceable_tensor_is_one_run_on_each_tile) {
  Fixture f(kTiles);
  for (const std::size_t d : {0, 1, 2}) {
    const Tensor t =
        popops::createSliceableTensor(f.graph, FLOAT, {3, 16, 10}, {d}, {1}, 0, "table");
    const Tensor slice = t.slice(1, 2, static_cast<unsigned>(d));
    CHECK(slice.getVarRegions().size() <= kTiles);
    CHECK(loads(f.graph, t).size() > kTiles / 2);
  }
}

TEST(a_dynamic_slice_lies_where_its_table_lies_unless_that_fills_a_tile) {
  Fixture f(kTiles);
  const Tensor at = f.constant<unsigned>({1}, {5});
  const Tensor spread = f.graph.addVariable(FLOAT, {6, 2 * kTiles}, "spread");
  for (unsigned tile = 0; tile < kTiles; ++tile)
    f.graph.setTileMapping(spread.slice(2 * tile, 2 * tile + 2, 1), kTiles - 1 - tile);
  const Tensor near = popops::dynamicSlice(f.graph, spread, at, {0}, {1}, f.prog);
  CHECK(f.graph.getTileMapping(near) == popops::getSliceMapping(f.graph, spread, {0}, {1}));

  const Tensor piled = f.graph.addVariable(FLOAT, {6, 1000}, "piled");
  f.graph.setTileMapping(piled, 3);
  const Tensor moved = popops::dynamicSlice(f.graph, piled, at, {0}, {1}, f.prog);
  CHECK_EQ(loads(f.graph, moved).size(), std::size_t{kTiles});

  Fixture g(kTiles);
  const Tensor table = g.constant<float>({6, 2 * kTiles}, counted(6 * 2 * kTiles));
  const Tensor row =
      popops::dynamicSlice(g.graph, table, g.constant<unsigned>({1}, {5}), {0}, {1}, g.prog);
  const auto got = g.run(row.flatten());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK_EQ(got[i], float(5 * 2 * kTiles + i));
}
