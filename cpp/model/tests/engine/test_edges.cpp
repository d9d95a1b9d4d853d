// The cost of vertices' edges that lie on other tiles, against a slow count of their bytes.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <sstream>
#include <utility>
#include <vector>

#include "Check.hpp"
#include "engine/Links.hpp"
#include "engine/image/Image.hpp"
#include "poplar/Engine.hpp"
#include "poplar/Graph.hpp"
#include "poplar/IPUModel.hpp"
#include "poplar/Program.hpp"

using namespace poplar;
using ipujax::engine::Cost;
using ipujax::engine::LinkLoads;
using ipujax::engine::StepDesc;

namespace {

constexpr unsigned kTilesPerIpu = 5;
constexpr unsigned kIpus = 4;
constexpr std::size_t kChunk = 3;  ///< elements that lie together
constexpr std::size_t kChunks = 90;

const char* const kCodelets = R"(
  #include <poplar/Vertex.hpp>
  using namespace poplar;
  struct Adding : Vertex {
    Input<Vector<float>> in;
    InOut<Vector<float>> both;
    Output<Vector<float>> out;
    bool compute() {
      for (unsigned i = 0; i < both.size(); ++i) both[i] += in[i % in.size()];
      for (unsigned i = 0; i < out.size(); ++i) out[i] = 2 * in[i % in.size()];
      return true;
    }
  };)";

enum Direction { kIn, kBoth, kOut };

struct Edge {
  Tensor tensor;
  unsigned tile;
  Direction direction;
};

/// Bytes that edges move, counted from the tiles of their elements.
struct Recount {
  std::map<unsigned, double> received;  ///< by the vertices' tiles, and sent back
  std::map<unsigned, double> kept_read, kept_written;
  std::map<std::pair<unsigned, unsigned>, double> read, written;  ///< by IPUs

  void add(const Graph& graph, const Edge& edge) {
    const auto mapping = graph.getTileMapping(edge.tensor);
    for (unsigned on = 0; on < mapping.size(); ++on) {
      double bytes = 0;
      for (const auto& interval : mapping[on]) bytes += 4.0 * static_cast<double>(interval.size());
      if (bytes == 0) continue;
      if (edge.direction != kOut) move(on, edge.tile, edge.tile, bytes, read, kept_read);
      if (edge.direction != kIn) move(edge.tile, on, edge.tile, bytes, written, kept_written);
    }
  }

 private:
  using ByIpus = std::map<std::pair<unsigned, unsigned>, double>;

  void move(unsigned from, unsigned to, unsigned tile, double bytes, ByIpus& links,
            std::map<unsigned, double>& kept) {
    const std::pair ipus{from / kTilesPerIpu, to / kTilesPerIpu};
    if (from == to)
      kept[tile] += bytes;
    else if (ipus.first == ipus.second)
      received[tile] += bytes;
    else
      links[ipus] += bytes;
  }
};

double sum(const auto& by_key) {
  double all = 0;
  for (const auto& [key, bytes] : by_key) all += bytes;
  return all;
}

double most(const auto& by_key) {
  double most = 0;
  for (const auto& [key, bytes] : by_key) most = std::max(most, bytes);
  return most;
}

/// Vertices on all tiles, each over some chunks of two variables that lie anywhere.
struct Scattered {
  Graph graph;
  program::Sequence prog;
  Tensor in, changed;
  std::vector<Edge> edges;
  std::vector<float> expected;
  std::mt19937 random;

  explicit Scattered(unsigned seed) : graph(device()), random(seed) {
    std::istringstream source(kCodelets);
    graph.addCodelets(source);
    in = variable("in");
    changed = variable("changed");
    expected.resize(kChunks * kChunk);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<float>(i % 31);
    graph.setInitialValue(in, expected);
    graph.setInitialValue(changed, expected);
    addVertices();
    graph.createHostRead("changed", changed.flatten());
  }

  static Device device() {
    IPUModel model;
    model.tilesPerIPU = kTilesPerIpu;
    model.numIPUs = kIpus;
    return model.createDevice();
  }

  unsigned anyTile() { return static_cast<unsigned>(random() % (kTilesPerIpu * kIpus)); }

  Tensor variable(const char* name) {
    const Tensor t = graph.addVariable(FLOAT, {kChunks, kChunk}, name);
    for (std::size_t i = 0; i < kChunks; ++i) graph.setTileMapping(t[i], anyTile());
    return t;
  }

  Tensor chunks(const Tensor& of, const std::vector<std::size_t>& which) {
    std::vector<Tensor> parts;
    for (const auto i : which) parts.push_back(of[i]);
    return concat(parts);
  }

  /// Each chunk is written at most once, but any number of vertices may read it, even twice each.
  void addVertices() {
    std::vector<std::size_t> order(kChunks);
    for (std::size_t i = 0; i < kChunks; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    const std::vector<float> before = expected;
    const ComputeSet cs = graph.addComputeSet();
    for (std::size_t next = 0; next + 4 <= kChunks; next += 4) {
      std::vector<std::size_t> read(1 + random() % 6);
      for (auto& i : read) i = random() % kChunks;
      if (read.size() > 2) read[1] = read[0];
      const std::vector<std::size_t> both{order[next], order[next + 1]};
      const std::vector<std::size_t> out{order[next + 2], order[next + 3]};
      const VertexRef v = graph.addVertex(cs, "Adding");
      const unsigned tile = anyTile();
      graph.setTileMapping(v, tile);
      connect(v, "in", chunks(in, read), tile, kIn);
      connect(v, "both", chunks(changed, both), tile, kBoth);
      connect(v, "out", chunks(changed, out), tile, kOut);
      for (std::size_t i = 0; i < 2 * kChunk; ++i) {
        const std::size_t from = i % (read.size() * kChunk);
        const float x = before[read[from / kChunk] * kChunk + from % kChunk];
        expected[both[i / kChunk] * kChunk + i % kChunk] += x;
        expected[out[i / kChunk] * kChunk + i % kChunk] = 2 * x;
      }
    }
    prog.add(program::Execute(cs));
  }

  void connect(const VertexRef& v, const char* field, const Tensor& t, unsigned tile,
               Direction direction) {
    graph.connect(v[field], t);
    edges.push_back({t, tile, direction});
  }
};

/// Cycles of the exchange between IPUs, if there is one.
double linkCycles(const std::map<std::pair<unsigned, unsigned>, double>& links,
                  const Target& target) {
  LinkLoads loads(kIpus, target.machine());
  for (const auto& [ipus, bytes] : links) loads.send(ipus.first, ipus.second, bytes);
  return std::ceil(loads.seconds() * target.machine().clock_hz);
}

/// Edges that are not one run of memory are gathered.
bool isGathered(const Tensor& t) { return t.getContiguousRegions().size() > 1; }

}  // namespace

TEST(edges_are_charged_what_a_slow_count_finds) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    Scattered s(seed);
    Recount all, gathered;
    for (const Edge& edge : s.edges) {
      all.add(s.graph, edge);
      if (isGathered(edge.tensor)) gathered.add(s.graph, edge);
    }
    const auto& machine = s.graph.getTarget().machine();
    std::vector<double> copied;
    const Executable executable = compileGraph(s.graph, {s.prog});
    for (const StepDesc& step : executable.image()->steps) {
      const Cost& cost = step.cost;
      if (step.kernel == "engine.edges") copied.push_back(cost.compute_cycles);
      if (step.kernel == "engine.edges") CHECK_EQ(cost.exchange_bytes + cost.link_bytes, 0.0);
      if (step.kernel != "engine.vertices") continue;
      CHECK_EQ(cost.exchange_bytes, sum(all.received));
      CHECK_EQ(cost.exchange_cycles, most(all.received) / machine.exchange_bytes_per_cycle);
      CHECK_EQ(cost.link_bytes, sum(all.read) + sum(all.written));
      CHECK_EQ(cost.link_cycles, linkCycles(all.read, s.graph.getTarget()) +
                                     linkCycles(all.written, s.graph.getTarget()));
    }
    const double rate = machine.memcpy_bytes_per_cycle;
    CHECK((copied == std::vector<double>{std::ceil(most(gathered.kept_read) / rate),
                                         std::ceil(most(gathered.kept_written) / rate)}));
  }
}

TEST(vertices_over_elements_of_other_ipus_compute_the_same) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    Scattered s(seed);
    Engine engine(s.graph, s.prog);
    engine.loadAndRun(Device(s.graph.getTarget()));
    std::vector<float> found(s.expected.size());
    engine.readTensor("changed", found.data(), found.data() + found.size());
    CHECK(found == s.expected);
  }
}
