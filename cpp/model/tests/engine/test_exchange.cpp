#include <map>
#include <random>
#include <set>

#include "Check.hpp"
#include "engine/graph/Exchange.hpp"
#include "engine/graph/View.hpp"
#include "engine/image/Image.hpp"
#include "poplar/Engine.hpp"
#include "poplar/Graph.hpp"
#include "popops/ElementWise.hpp"

/// The exchange cost of an operand, compared with a count element by element.
namespace {
namespace engine = ipujax::engine;
using poplar::Graph;
using poplar::Tensor;

constexpr unsigned kTiles = 7;

using Random = std::mt19937;
unsigned below(Random& random, unsigned n) { return static_cast<unsigned>(random() % n); }

struct Place {
  std::uint32_t variable;
  std::int64_t element;
  unsigned tile;
  auto operator<=>(const Place&) const = default;
};

std::vector<Place> placesOf(const Graph& graph, const Tensor& t) {
  std::vector<Place> places;
  const engine::GraphScope scope = graph;
  engine::forEachRun(*t.view(), [&](std::uint32_t variable, std::int64_t begin, std::size_t n) {
    for (std::size_t k = 0; k < n; ++k) {
      const std::int64_t element = begin + static_cast<std::int64_t>(k);
      unsigned tile = 0;
      scope.impl.variables[variable].map->forEachPart(
          static_cast<std::uint64_t>(element), static_cast<std::uint64_t>(element) + 1,
          [&](std::uint32_t on, auto, auto) { tile = on; });
      places.push_back({variable, element, tile});
    }
  });
  return places;
}

engine::Exchange counted(const Graph& graph, const std::vector<Tensor>& operands, const Tensor& out,
                         double size) {
  std::map<unsigned, double> received, sent;
  const auto to = placesOf(graph, out);
  for (const Tensor& operand : operands) {
    std::set<std::pair<unsigned, Place>> wanted;
    std::set<Place> moved;
    const auto from = placesOf(graph, operand);
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (from[i].tile == to[i].tile) continue;
      wanted.insert({to[i].tile, from[i]});
      moved.insert(from[i]);
    }
    for (const auto& [tile, place] : wanted) received[tile] += size;
    for (const Place& place : moved) sent[place.tile] += size;
  }
  engine::Exchange exchange;
  for (const auto& [tile, bytes] : received) {
    exchange.bytes += bytes;
    exchange.worst_tile_bytes = std::max(exchange.worst_tile_bytes, bytes);
  }
  for (const auto& [tile, bytes] : sent)
    exchange.worst_sent_bytes = std::max(exchange.worst_sent_bytes, bytes);
  return exchange;
}

/// A variable with runs of random lengths on random tiles, or spread linearly.
Tensor variable(Graph& graph, Random& random, const std::vector<std::size_t>& shape) {
  if (below(random, 2) == 0)
    return graph.addVariable(poplar::FLOAT, shape, poplar::VariableMappingMethod::LINEAR);
  const Tensor t = graph.addVariable(poplar::FLOAT, shape);
  const Tensor flat = t.flatten();
  for (std::size_t at = 0; at < flat.numElements();) {
    const std::size_t end = std::min<std::size_t>(flat.numElements(), at + 1 + below(random, 9));
    graph.setTileMapping(flat.slice(at, end), below(random, kTiles));
    at = end;
  }
  return t;
}

/// A view of that shape: of a larger variable, of a transposed, reversed or repeated one, or of
/// two.
Tensor viewOf(Graph& graph, Random& random, const std::vector<std::size_t>& shape, int depth = 2) {
  const std::size_t d = below(random, static_cast<unsigned>(shape.size()));
  auto inner = shape;
  switch (depth == 0 ? 9 : below(random, 6)) {
    case 0: {
      const std::size_t before = below(random, 3);
      inner[d] += before + below(random, 3);
      return viewOf(graph, random, inner, depth - 1)
          .slice(before, before + shape[d], static_cast<unsigned>(d));
    }
    case 1: {
      std::vector<unsigned> order{0, 1, 2};
      std::shuffle(order.begin(), order.end(), random);
      for (unsigned k = 0; k < 3; ++k) inner[order[k]] = shape[k];
      return viewOf(graph, random, inner, depth - 1).dimShuffle(order);
    }
    case 2:
      return viewOf(graph, random, inner, depth - 1).reverse(static_cast<unsigned>(d));
    case 3:
      inner[d] = 1;
      return viewOf(graph, random, inner, depth - 1)
          .broadcast(static_cast<unsigned>(shape[d]), static_cast<unsigned>(d));
    case 4: {
      if (shape[d] < 2) return variable(graph, random, shape);
      inner[d] = 1 + below(random, static_cast<unsigned>(shape[d]) - 1);
      const Tensor first = viewOf(graph, random, inner, depth - 1);
      inner[d] = shape[d] - inner[d];
      return poplar::concat(first, viewOf(graph, random, inner, depth - 1),
                            static_cast<unsigned>(d));
    }
    default:
      return variable(graph, random, shape);
  }
}
}  // namespace

TEST(exchange_is_what_lies_on_another_tile) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    Random random(seed);
    Graph graph(poplar::Target::createIPUTarget(1, kTiles, "ipu2"));
    std::vector<std::size_t> shape;
    for (int d = 0; d < 3; ++d) shape.push_back(1 + below(random, 6));
    std::vector<Tensor> operands;
    for (unsigned n = 1 + below(random, 3); n > 0; --n)
      operands.push_back(viewOf(graph, random, shape));
    Tensor out = variable(graph, random, shape);
    if (below(random, 3) == 0) out = graph.clone(operands[0]);
    engine::ExchangeCount count(graph);
    for (const Tensor& operand : operands) count.add(operand, out);
    const engine::Exchange found = count.result();
    const engine::Exchange expected = counted(graph, operands, out, 4);
    CHECK_EQ(found.bytes, expected.bytes);
    CHECK_EQ(found.worst_tile_bytes, expected.worst_tile_bytes);
    CHECK_EQ(found.worst_sent_bytes, expected.worst_sent_bytes);
  }
}

/// Moves the variable `by` tiles further, wrapping around at the end.
void turn(engine::Variable& variable, unsigned by) {
  std::vector<engine::TileMap::Region> regions = variable.map->regions;
  for (auto& region : regions) region.tile = (region.tile + by) % kTiles;
  variable.map = engine::tileMapOf(variable.elements, std::move(regions));
}

/// A count for one layout is reused for the same layout on other tiles, and for no other.
TEST(an_exchange_is_the_same_where_all_tiles_are_turned) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Graph graph(poplar::Target::createIPUTarget(1, kTiles, "ipu2"));
    const std::vector<std::size_t> shape{1 + below(random, 6), 1 + below(random, 6), 4};
    const Tensor from = viewOf(graph, random, shape);
    const Tensor to = viewOf(graph, random, shape);
    auto& variables = engine::GraphScope(graph).impl.variables;
    for (int round = 0; round < 6; ++round) {
      const engine::Exchange found = engine::exchangeBetween(graph, from, to);
      const engine::Exchange expected = counted(graph, {from}, to, 4);
      CHECK_EQ(found.bytes, expected.bytes);
      CHECK_EQ(found.worst_tile_bytes, expected.worst_tile_bytes);
      CHECK_EQ(found.worst_sent_bytes, expected.worst_sent_bytes);
      if (round % 2 == 0)
        for (auto& variable : variables) turn(variable, 1 + round);
      else
        turn(variables[below(random, static_cast<unsigned>(variables.size()))], 1);
    }
  }
}

/// Tensors of many runs are counted on some tiles only.
TEST(a_sample_of_tiles_is_near_the_count_of_all) {
  Graph graph(poplar::Target::createIPUTarget(1, 64, "ipu2"));
  const std::size_t n = 512;
  const auto linear = poplar::VariableMappingMethod::LINEAR;
  const Tensor x = graph.addVariable(poplar::FLOAT, {n, n}, linear);
  const Tensor out = graph.addVariable(poplar::FLOAT, {n, n}, linear);
  const Tensor pairs = graph.addVariable(poplar::FLOAT, {n, n, 2}, linear);
  const Tensor row = graph.addVariable(poplar::FLOAT, {n, 1}, linear).broadcast(n, 1);
  const std::pair<Tensor, Tensor> moves[] = {{x.transpose(), out},
                                             {x, out.transpose()},
                                             {x.transpose(), pairs.slice(1, 2, 2).reshape({n, n})},
                                             {x, pairs.slice(1, 2, 2).reshape({n, n})},
                                             {row.transpose(), out},
                                             {row, out}};
  for (const auto& [from, to] : moves) {
    const auto found = engine::exchangeBetween(graph, from, to);
    const auto expected = counted(graph, {from}, to, 4);
    CHECK_NEAR(found.bytes, expected.bytes, 0.02 * expected.bytes + 8);
    CHECK_NEAR(found.worst_tile_bytes, expected.worst_tile_bytes,
               0.05 * expected.worst_tile_bytes + 8);
  }
}

/// x[1:] + x[:-1]: one element crosses each border between tiles.
TEST(shifted_slices_move_their_borders) {
  Graph graph;
  poplar::program::Sequence prog;
  const std::size_t n = 1472 * 100;
  const Tensor x = graph.addVariable(poplar::FLOAT, {n}, poplar::VariableMappingMethod::LINEAR);
  popops::add(graph, x.slice(1, n), x.slice(0, n - 1), prog);
  const auto cost = poplar::compileGraph(graph, {prog}).image()->cost();
  CHECK_EQ(cost.exchange_bytes, 4.0 * 1471);
  CHECK_EQ(cost.exchange_cycles, 1.0);
}
