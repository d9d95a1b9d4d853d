// What a codelet on all workers of an IPU takes, compared with the same loop in plain C++.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <sstream>

#include "Check.hpp"
#include "poplar/Program.hpp"
#include "popops/OnDevice.hpp"

using namespace poplar;

namespace {

constexpr std::size_t kVertices = 1472 * 6;
constexpr unsigned kRepeats = 50;

/// Of processors, all threads together: others may use the machine meanwhile.
template <class F>
double seconds(const F& run) {
  const std::clock_t begin = std::clock();
  run();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / kRepeats;
}

/// A program that runs the codelet on n elements a vertex, kRepeats times.
std::unique_ptr<Engine> codeletProgram(std::size_t n) {
  OnDevice d;
  std::istringstream source(R"src(
    #include <poplar/Vertex.hpp>
    using namespace poplar;
    class Axpy : public Vertex {
     public:
      InOut<Vector<float>> y;
      Input<Vector<float>> x;
      float scale;
      bool compute() {
        for (unsigned i = 0; i < y.size(); ++i) y[i] += scale * x[i];
        return true;
      }
    };)src");
  d.graph.addCodelets(source);
  const Tensor x = d.graph.addVariable(FLOAT, {kVertices, n}, VariableMappingMethod::LINEAR, "x");
  const Tensor y = d.graph.addVariable(FLOAT, {kVertices, n}, VariableMappingMethod::LINEAR, "y");
  const ComputeSet cs = d.graph.addComputeSet();
  for (std::size_t i = 0; i < kVertices; ++i) {
    const VertexRef v = d.graph.addVertex(cs, "Axpy", {{"x", x[i]}, {"y", y[i]}});
    d.graph.setInitialValue(v["scale"], 0.5f);
    d.graph.setTileMapping(v, static_cast<unsigned>(i / 6));
  }
  program::Sequence prog;
  prog.add(program::Repeat(kRepeats, program::Execute(cs)));
  auto engine = std::make_unique<Engine>(d.graph, prog);
  engine->load(Device(d.graph.getTarget()));
  engine->run(0);
  return engine;
}

__attribute__((noinline)) void axpy(float* y, const float* x, float scale, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += scale * x[i];
}

struct Plain {
  explicit Plain(std::size_t size) : n(size), x(kVertices * n), y(kVertices * n) {}
  void run() {
    for (unsigned r = 0; r < kRepeats; ++r)
      for (std::size_t i = 0; i < kVertices; ++i) axpy(y.data() + i * n, x.data() + i * n, 0.5f, n);
  }
  std::size_t n;
  std::vector<float> x, y;
};

}  // namespace

// The bound is what users are told; 1.5 ends the search for a quiet moment. Both take turns and the
// best of many counts, so that what else the machine does meanwhile meets both alike.
TEST(a_codelet_takes_little_more_than_a_plain_loop) {
  for (const std::size_t n : {std::size_t{64}, std::size_t{512}}) {
    const auto engine = codeletProgram(n);
    Plain plain(n);
    double codelet = 1e9, loop = 1e9;
    for (int turn = 0; turn < 30; ++turn) {
      codelet = std::min(codelet, seconds([&] { engine->run(0); }));
      loop = std::min(loop, seconds([&] { plain.run(); }));
      if (turn > 5 && codelet <= 1.5 * loop) break;
    }
    std::printf("%zu vertices of %zu elements: %.0f us, plain loop %.0f us: ratio %.2f\n",
                kVertices, n, codelet * 1e6, loop * 1e6, codelet / loop);
    CHECK(codelet <= 3 * loop);
  }
}
