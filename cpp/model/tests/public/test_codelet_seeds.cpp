#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/RandomSeed.hpp>
#include <poprand/RandomGen.hpp>
#include <set>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

/// Random numbers of codelets: those of the hardware's generators, as seeds set them.
using namespace poplar;
using namespace poplar::program;

namespace {

constexpr unsigned kTiles = 8, kWorkers = 6, kDraws = 3;
using Words = std::vector<unsigned>;

const char* const kCodelets = R"src(
#include <poplar/Vertex.hpp>
#include <ipu_builtins.h>
using namespace poplar;
struct Draw : Vertex {
  Output<Vector<unsigned>> out;
  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i) out[i] = __builtin_ipu_urand32();
    return true;
  }
};
struct DrawAll : MultiVertex {
  Output<Vector<unsigned>> out;
  bool compute(unsigned worker) {
    const unsigned n = out.size() / numWorkers();
    for (unsigned i = 0; i < n; ++i) out[worker * n + i] = __builtin_ipu_urand32();
    return true;
  }
};
)src";

/// The generator of a worker, implemented a second time.
struct Generator {
  std::uint64_t s0, s1;
  explicit Generator(const unsigned* words)
      : s0(words[0] | std::uint64_t{words[1]} << 32),
        s1(words[2] | std::uint64_t{words[3]} << 32) {}
  static std::uint64_t turned(std::uint64_t x, int by) { return x << by | x >> (64 - by); }
  unsigned next() {
    const std::uint64_t sx = s0 ^ s1, sa = s0 & s1;
    s0 = turned(s0, 55) ^ sx ^ sx << 14;
    s1 = turned(sx, 36);
    return static_cast<unsigned>((sx ^ (turned(sa, 1) | turned(sa, 2))) >> 32);
  }
  Words words() const {
    return {static_cast<unsigned>(s0), static_cast<unsigned>(s0 >> 32), static_cast<unsigned>(s1),
            static_cast<unsigned>(s1 >> 32)};
  }
};

struct Drawing : Fixture {
  Drawing() {
    std::istringstream source(kCodelets);
    graph.addCodelets(source);
  }
  /// One vertex of six workers on each tile: [tiles, workers, draws].
  Tensor drawAll() {
    const Tensor out = graph.addVariable(UNSIGNED_INT, {kTiles, kWorkers, kDraws}, "drawn");
    const ComputeSet cs = graph.addComputeSet();
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      graph.setTileMapping(out[tile], tile);
      graph.setTileMapping(graph.addVertex(cs, "DrawAll", {{"out", out[tile].flatten()}}), tile);
    }
    prog.add(Execute(cs));
    return out;
  }
  Tensor seed(unsigned a, unsigned b) { return constant<unsigned>({2}, {a, b}); }
  void setSeed(unsigned a, unsigned modifier = 0) {
    poprand::setSeed(graph, seed(a, 0), modifier, prog);
  }
};

Words counted() {
  Words words(kTiles * kWorkers * 4);
  for (unsigned i = 0; i < words.size(); ++i) words[i] = 2654435761u * (i + 1);
  return words;
}

Words piece(const Words& all, std::size_t number) {
  const auto n = static_cast<std::ptrdiff_t>(kTiles * kWorkers * kDraws);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(number) * n;
  return {begin, begin + n};
}

}  // namespace

TEST(workers_draw_from_the_seeds_that_the_hardware_was_given) {
  Drawing d;
  const Words given = counted();
  setHwSeeds(d.graph, d.constant<unsigned>({kTiles, kWorkers, 4}, given), d.prog);
  const Tensor first = d.drawAll();
  const Tensor second = d.drawAll();
  const Tensor left = getHwSeeds(d.graph, d.prog);
  const Words found = d.run<unsigned>(concat({first.flatten(), second.flatten(), left.flatten()}));
  for (unsigned w = 0; w < kTiles * kWorkers; ++w) {
    Generator expected(given.data() + std::size_t{w} * 4);
    for (unsigned part = 0; part < 2; ++part)
      for (unsigned i = 0; i < kDraws; ++i)
        CHECK_EQ(piece(found, part)[w * kDraws + i], expected.next());
    for (unsigned i = 0; i < 4; ++i)
      CHECK_EQ(found[2 * kTiles * kWorkers * kDraws + w * 4 + i], expected.words()[i]);
  }
}

TEST(vertices_of_a_tile_share_its_workers_in_turn) {
  Drawing d;
  const Words given = counted();
  setHwSeeds(d.graph, d.constant<unsigned>({kTiles, kWorkers, 4}, given), d.prog);
  constexpr unsigned kVertices = 200;  // on two tiles in turn, more than one thread takes at once
  const Tensor out = d.graph.addVariable(UNSIGNED_INT, {kVertices, 1}, "drawn");
  d.graph.setTileMapping(out, 0);
  const ComputeSet cs = d.graph.addComputeSet();
  for (unsigned i = 0; i < kVertices; ++i)
    d.graph.setTileMapping(d.graph.addVertex(cs, "Draw", {{"out", out[i]}}), 3 + i % 2);
  d.prog.add(Execute(cs));
  const Words found = d.run<unsigned>(out);
  std::vector<Generator> workers;
  for (unsigned w = 0; w < 2 * kWorkers; ++w)
    workers.emplace_back(given.data() + std::size_t{3 * kWorkers + w} * 4);
  for (unsigned i = 0; i < kVertices; ++i)
    CHECK_EQ(found[i], workers[i % 2 * kWorkers + i / 2 % kWorkers].next());
}

TEST(equal_seeds_give_equal_numbers_and_others_give_others) {
  Drawing d;
  std::vector<Tensor> drawn;
  const auto draw = [&] { drawn.push_back(d.drawAll().flatten()); };
  d.setSeed(1);
  draw();
  draw();
  d.setSeed(2);
  draw();
  d.setSeed(1, 7);
  draw();
  d.setSeed(1);
  draw();
  const Tensor kept = getHwSeeds(d.graph, d.prog);
  draw();
  setHwSeeds(d.graph, kept, d.prog);
  draw();
  const Words found = d.run<unsigned>(concat(drawn));
  CHECK(piece(found, 0) == piece(found, 4));
  CHECK(piece(found, 1) == piece(found, 5));
  CHECK(piece(found, 5) == piece(found, 6));
  std::set<unsigned> different;
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned word : piece(found, i)) different.insert(word);
  CHECK_EQ(different.size(), std::size_t{4 * kTiles * kWorkers * kDraws});
}

// The state persists between runs, and libraries and codelets draw from one sequence.
TEST(each_run_goes_on_where_the_last_one_ended) {
  const auto runs = [] {
    Drawing d;
    d.setSeed(5);
    Sequence seeded = std::exchange(d.prog, Sequence());
    const Tensor mine = d.drawAll();
    const Tensor shape = d.variable("shape", {16});
    const Tensor theirs = poprand::uniform(d.graph, nullptr, 0, shape, FLOAT, 0, 1, d.prog);
    d.graph.createHostRead("mine", mine);
    d.graph.createHostRead("theirs", theirs);
    Engine engine(d.graph, {seeded, d.prog});
    engine.load(d.device);
    engine.run(0);
    std::vector<std::pair<Words, std::vector<float>>> all;
    for (int i = 0; i < 3; ++i) {
      engine.run(1);
      Words words(kTiles * kWorkers * kDraws);
      std::vector<float> floats(16);
      engine.readTensor("mine", words.data(), words.data() + words.size());
      engine.readTensor("theirs", floats.data(), floats.data() + floats.size());
      all.emplace_back(words, floats);
    }
    return all;
  };
  const auto first = runs();
  CHECK(first == runs());
  CHECK(first[0].first != first[1].first && first[1].first != first[2].first);
  CHECK(first[0].second != first[1].second && first[1].second != first[2].second);
}

TEST(a_virtual_graph_has_the_seeds_of_its_tiles) {
  Drawing d;
  Graph part = d.graph.createVirtualGraph(2, 5);
  const Words given = counted();
  setHwSeeds(d.graph, d.constant<unsigned>({kTiles, kWorkers, 4}, given), d.prog);
  const Tensor of_part = getHwSeeds(part, d.prog);
  CHECK(of_part.shape() == std::vector<std::size_t>({3, kWorkers, 4}));
  const Words found = d.run<unsigned>(of_part);
  CHECK(std::equal(found.begin(), found.end(), given.begin() + 2 * kWorkers * 4));
}

/// Replicas on the tiles from `first_tile` on set, draw from and read their generators.
void drawInReplicas(unsigned first_tile, unsigned replicas) {
  const unsigned own = (kTiles - first_tile) / replicas, all = own * replicas;
  Drawing d;
  Graph some = d.graph.createVirtualGraph(first_tile, first_tile + all);
  Graph part = some.createReplicatedGraph(replicas);
  const Tensor seeds = part.addVariable(UNSIGNED_INT, {own, kWorkers, 4});
  part.setTileMapping(seeds, 0);
  part.createHostRead("first", getHwSeeds(part, d.prog));
  setHwSeeds(part, seeds, d.prog);
  const Tensor out = part.addVariable(UNSIGNED_INT, {own, kWorkers, kDraws});
  const ComputeSet cs = part.addComputeSet();
  for (unsigned tile = 0; tile < own; ++tile) {
    part.setTileMapping(out[tile], tile);
    part.setTileMapping(part.addVertex(cs, "DrawAll", {{"out", out[tile].flatten()}}), tile);
  }
  d.prog.add(Execute(cs));
  part.createHostWrite("seeds", seeds);
  part.createHostRead("out", out);
  part.createHostRead("left", getHwSeeds(part, d.prog));
  Engine engine(d.graph, d.prog);
  engine.load(d.device);
  Words given = counted();
  given.resize(all * kWorkers * 4);
  engine.writeTensor("seeds", given.data(), given.data() + given.size());
  engine.run();
  Words found(all * kWorkers * kDraws), left(given.size()), first(given.size());
  engine.readTensor("first", first.data(), first.data() + first.size());
  CHECK_EQ(std::set<unsigned>(first.begin(), first.end()).size(), first.size() / replicas);
  engine.readTensor("out", found.data(), found.data() + found.size());
  engine.readTensor("left", left.data(), left.data() + left.size());
  for (unsigned w = 0; w < all * kWorkers; ++w) {
    Generator expected(given.data() + std::size_t{w} * 4);
    for (unsigned i = 0; i < kDraws; ++i) CHECK_EQ(found[w * kDraws + i], expected.next());
    for (unsigned i = 0; i < 4; ++i) CHECK_EQ(left[w * 4 + i], expected.words()[i]);
  }
}

TEST(replicas_within_a_program_draw_from_their_own_seeds) {
  for (const unsigned first_tile : {0U, 1U, 5U})
    for (const unsigned replicas : {2U, 3U}) drawInReplicas(first_tile, replicas);
}
