#include <cstdint>
#include <poplar/Engine.hpp>
#include <pva/pva.hpp>
#include <utility>
#include <vector>

#include "Check.hpp"
#include "Codelets.hpp"
#include "Fixture.hpp"

// One vertex a tile, over its own block of cells and the cells around it on neighbouring tiles.
using namespace poplar;
using namespace poplar::program;

namespace {

constexpr std::size_t kBlock = 10;
constexpr std::size_t kRow = kBlock + 2;

const char* const kCodelet = R"(
  #include <poplar/Vertex.hpp>
  struct Around : poplar::Vertex {
    poplar::Vector<poplar::Input<poplar::Vector<float>>> in;
    poplar::Vector<poplar::Output<poplar::Vector<float>>> out;
    bool compute() {
      for (unsigned i = 0; i < out.size(); ++i)
        for (unsigned j = 0; j < out[i].size(); ++j)
          out[i][j] = in[i][j] + 2 * in[i + 2][j + 2] + 3 * in[i + 1][j] + 5 * in[i][j + 2];
      return true;
    }
  };
  struct Doubling : poplar::Vertex {
    poplar::InOut<poplar::Vector<float>> cells;
    bool compute() {
      for (auto& cell : cells) cell *= 2;
      return true;
    }
  };)";

/// Bytes of this many floats, rounded up to whole words of 8 bytes.
std::size_t inWords(std::size_t floats) { return (4 * floats + 7) / 8 * 8; }

/// Rows of blocks, each on a tile of its own, and the vertices between two such sets of blocks.
struct Blocks : Fixture {
  std::size_t down, across;
  Tensor from, to;
  std::vector<Tensor> around;           ///< of each vertex the rows that it reads
  std::vector<std::size_t> zero_bytes;  ///< by tile

  Blocks(std::size_t rows, std::size_t columns)
      : Fixture(static_cast<unsigned>(rows * columns)),
        down(rows),
        across(columns),
        zero_bytes(rows * columns) {
    add(*this, kCodelet);
    from = blocks();
    to = blocks();
    const ComputeSet cs = graph.addComputeSet("around");
    for (std::size_t i = 0; i < down; ++i)
      for (std::size_t j = 0; j < across; ++j) addVertex(cs, i, j);
    prog.add(Execute(cs));
  }

  static std::size_t cells(std::size_t n) { return n * kBlock; }

  unsigned tileOf(std::size_t i, std::size_t j) const {
    return static_cast<unsigned>(i * across + j);
  }

  Tensor blocks() {
    const Tensor all = graph.addVariable(FLOAT, {down, across, kBlock, kBlock});
    for (std::size_t i = 0; i < down; ++i)
      for (std::size_t j = 0; j < across; ++j) graph.setTileMapping(all[i][j], tileOf(i, j));
    return all.dimShuffle({0, 2, 1, 3}).reshape({cells(down), cells(across)});
  }

  Tensor zeros(std::size_t rows, std::size_t columns, unsigned tile) {
    zero_bytes[tile] += inWords(rows * columns);
    const Tensor none = graph.addConstant(FLOAT, {rows, columns}, 0.0F);
    graph.setTileMapping(none, tile);
    return none;
  }

  /// Adds a vertex that reads its block and one more cell on each side.
  void addVertex(const ComputeSet& cs, std::size_t i, std::size_t j) {
    const unsigned tile = tileOf(i, j);
    const std::size_t top = i * kBlock, left = j * kBlock;
    const std::size_t bottom = top + kBlock, right = left + kBlock;
    const std::size_t first = left - (j > 0), last = right + (j + 1 < across);
    Tensor rows = from.slice({top - (i > 0), first}, {bottom + (i + 1 < down), last});
    if (i == 0) rows = concat(zeros(1, last - first, tile), rows);
    if (i + 1 == down) rows = concat(rows, zeros(1, last - first, tile));
    if (j == 0) rows = concat(zeros(kRow, 1, tile), rows, 1);
    if (j + 1 == across) rows = concat(rows, zeros(kRow, 1, tile), 1);
    const VertexRef v = graph.addVertex(cs, "Around");
    graph.connect(v["in"], rows);
    around.push_back(rows);
    graph.connect(v["out"], to.slice({top, left}, {bottom, right}));
    graph.setTileMapping(v, tile);
  }
};

/// Bytes of tile 0, and the number of steps in a run.
std::pair<std::uint64_t, std::size_t> accountOf(std::size_t side) {
  Blocks f(side, side);
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  const auto report = engine.getReport();
  return {report.compilation().tiles()[0].memory().total().excludingGaps(),
          report.execution().steps().size()};
}

}  // namespace

TEST(vertices_read_the_cells_around_their_own) {
  Blocks f(3, 3);
  const std::size_t n = Blocks::cells(f.down);
  std::vector<float> values(n * n);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97);
  f.graph.setInitialValue(f.from, values);
  const auto found = f.run<float>(f.to);
  const auto at = [&](std::size_t i, std::size_t j) {  // one further in both dimensions
    const bool inside = i > 0 && j > 0 && i <= n && j <= n;
    return inside ? values[(i - 1) * n + j - 1] : 0.0F;
  };
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      CHECK_EQ(found[i * n + j],
               at(i, j) + 2 * at(i + 2, j + 2) + 3 * at(i + 1, j) + 5 * at(i, j + 2));
}

TEST(a_vertex_changes_elements_where_they_lie_and_leaves_those_between) {
  Fixture f;
  add(f, kCodelet);
  const auto cells = f.constant<float>({2, 6}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const ComputeSet cs = f.graph.addComputeSet();
  const VertexRef v = f.graph.addVertex(cs, "Doubling");
  f.graph.connect(v["cells"], concat(cells[1].slice(3, 6), cells[0].slice(1, 3)));
  f.graph.setTileMapping(v, 3);
  f.prog.add(Execute(cs));
  CHECK((f.run<float>(cells) == std::vector<float>{0, 2, 4, 3, 4, 5, 6, 7, 8, 18, 20, 22}));
}

TEST(a_tile_is_charged_for_its_own_vertex_however_many_tiles_there_are) {
  const auto [few_bytes, few_steps] = accountOf(3);
  const auto [more_bytes, more_steps] = accountOf(8);
  // Its block twice, and each row of the cells around it. The rest is code, stacks and the vertex.
  const std::uint64_t cells = 4 * (2 * kBlock * kBlock + kRow * kRow);
  CHECK(few_bytes >= cells && few_bytes < cells + 6000);
  CHECK_EQ(few_bytes, more_bytes);
  CHECK_EQ(few_steps, more_steps);
}

/// Counted from the mapping: its cells twice, its zeros, and the rows that are not one run.
TEST(each_of_1472_tiles_is_charged_for_what_its_own_vertex_reads) {
  Blocks f(32, 46);
  const Engine engine(f.graph, f.prog);
  const auto tiles = engine.getReport().compilation().tiles();
  CHECK_EQ(tiles.size(), 1472u);
  for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
    std::size_t bytes = 2 * 4 * kBlock * kBlock + f.zero_bytes[tile];
    for (std::size_t row = 0; row < kRow; ++row) {
      const Tensor cells = f.around[tile][row];
      CHECK_EQ(cells.numElements(), kRow);
      if (cells.getContiguousRegions().size() > 1) bytes += inWords(kRow);
    }
    // The last word need not be full.
    const std::uint64_t charged = tiles[tile].memory().category().variable().total();
    CHECK(charged <= bytes && bytes < charged + 8);
  }
}

TEST(compiling_vertices_over_their_neighbours_takes_few_steps) { CHECK(accountOf(38).second < 8); }
