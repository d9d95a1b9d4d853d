#include <poplar/Engine.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <random>
#include <vector>

#include "Check.hpp"
#include "Fixture.hpp"

// The tiles of reductions' results if they are given no output, or one without a mapping.
using namespace poplar;
using popops::Operation;

namespace {

constexpr unsigned kTiles = 8;

/// The tile of each element.
std::vector<unsigned> tilesOf(const Graph& graph, const Tensor& t) {
  std::vector<unsigned> tiles(t.numElements());
  const auto mapping = graph.getTileMapping(t);
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    for (const auto& interval : mapping[tile])
      for (auto i = interval.begin(); i < interval.end(); ++i) tiles[i] = tile;
  return tiles;
}

/// Rows on random tiles, reduced along the dimension of their elements, `dims`.
struct Rows {
  Fixture f{kTiles};
  std::vector<unsigned> tiles;
  std::vector<float> sums;
  Tensor in;  ///< [columns, rows] or [rows, columns]
  std::vector<std::size_t> dims;

  Rows(std::mt19937& random, bool rows_first, std::size_t rows, std::size_t columns) {
    const auto values = randomFloats(random, rows * columns);
    auto t = f.constant<float>({rows, columns}, values);
    for (std::size_t i = 0; i < rows; ++i) {
      tiles.push_back(static_cast<unsigned>(random() % kTiles));
      f.graph.setTileMapping(t[i], tiles.back());
      float sum = 0;
      for (std::size_t j = 0; j < columns; ++j) sum += values[i * columns + j];
      sums.push_back(sum);
    }
    in = rows_first ? t : t.transpose();
    dims = {rows_first ? 1U : 0U};
  }
  void checkValues(const Tensor& out) {
    const auto found = f.run(out);
    for (std::size_t i = 0; i < sums.size(); ++i) CHECK_NEAR(found[i], sums[i], 1e-4);
  }
};

}  // namespace

TEST(results_lie_where_their_elements_are) {
  std::mt19937 random(1);
  for (const bool rows_first : {true, false}) {
    for (int turn = 0; turn < 10; ++turn) {
      const std::size_t rows = 1 + random() % 20, columns = 1 + random() % 40;
      Rows r(random, rows_first, rows, columns);
      const auto out = popops::reduce(r.f.graph, r.in, r.dims, Operation::ADD, r.f.prog);
      CHECK(tilesOf(r.f.graph, out) == r.tiles);
      const auto given = r.f.graph.addVariable(FLOAT, {rows});  // without a mapping
      popops::reduceWithOutput(r.f.graph, r.in, given, r.dims, Operation::ADD, r.f.prog);
      CHECK(tilesOf(r.f.graph, given) == r.tiles);
      r.checkValues(turn % 2 == 0 ? out : given);
    }
  }
}

TEST(an_output_that_is_mapped_stays_where_it_is) {
  std::mt19937 random(2);
  Rows r(random, true, 16, 8);
  const auto out = r.f.graph.addVariable(FLOAT, {16});
  r.f.graph.setTileMapping(out, 5);
  popops::reduceWithOutput(r.f.graph, r.in, out, r.dims, Operation::ADD, r.f.prog);
  CHECK(tilesOf(r.f.graph, out) == std::vector<unsigned>(16, 5));
  r.checkValues(out);
}

TEST(results_of_elements_on_several_tiles_are_spread_evenly) {
  Fixture f(kTiles);
  const auto in = f.graph.addVariable(FLOAT, {64, 64});
  poputil::mapTensorLinearly(f.graph, in);  // eight rows on a tile
  const auto down = popops::reduce(f.graph, in, {0}, Operation::ADD, f.prog);
  const auto even = f.graph.addVariable(FLOAT, {64});
  poputil::mapTensorLinearly(f.graph, even);
  CHECK(tilesOf(f.graph, down) == tilesOf(f.graph, even));
}

TEST(no_tile_gets_a_part_of_a_word) {
  for (const std::size_t on_tile : {1U, 2U, 3U, 4U}) {
    Fixture f(kTiles);
    const auto in = f.graph.addVariable(HALF, {on_tile * 4, 10});
    for (std::size_t i = 0; i < in.dim(0); ++i)
      f.graph.setTileMapping(in[i], static_cast<unsigned>(i / on_tile));
    const auto halves = popops::reduce(f.graph, in, HALF, {1}, Operation::ADD, f.prog);
    const auto floats = popops::reduce(f.graph, in, FLOAT, {1}, Operation::ADD, f.prog);
    CHECK_EQ(tilesOf(f.graph, halves).back() == 3, on_tile % 2 == 0);
    CHECK_EQ(tilesOf(f.graph, floats).back(), 3U);
  }
}

TEST(a_reduction_without_exchange_takes_none) {
  std::mt19937 random(3);
  Rows r(random, true, 16, 64);
  popops::reduce(r.f.graph, r.in, r.dims, Operation::ADD, r.f.prog);
  const Engine engine(r.f.graph, r.f.prog);
  const auto profile = engine.getGraphProfile();
  CHECK_EQ(profile["longestProgram"]["exchangeBytes"].asDouble(), 0.0);
}
