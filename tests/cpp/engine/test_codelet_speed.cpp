// What a codelet on all workers of an IPU takes, compared with the same loop in plain C++.
#include <algorithm>
#include <cstdio>
#include <ctime>
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
  double best = 1e9;
  for (int i = 0; i < 7; ++i) {
    const std::clock_t begin = std::clock();
    run();
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return best;
}

/// One program step of the codelet, in seconds.
double codeletSeconds(std::size_t n) {
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
  Engine engine(d.graph, prog);
  engine.load(Device(d.graph.getTarget()));
  engine.run(0);
  return seconds([&] { engine.run(0); }) / kRepeats;
}

__attribute__((noinline)) void axpy(float* y, const float* x, float scale, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += scale * x[i];
}

double plainSeconds(std::size_t n) {
  std::vector<float> x(kVertices * n), y(kVertices * n);
  return seconds([&] {
           for (unsigned r = 0; r < kRepeats; ++r) {
             for (std::size_t i = 0; i < kVertices; ++i)
               axpy(y.data() + i * n, x.data() + i * n, 0.5f, n);
           }
         }) /
         kRepeats;
}

}  // namespace

TEST(a_codelet_takes_at_most_three_times_a_plain_loop) {
  for (const std::size_t n : {std::size_t{64}, std::size_t{512}}) {
    double ratio = 1e9;
    for (int attempt = 0; attempt < 3 && ratio > 3; ++attempt) {
      const double codelet = codeletSeconds(n), plain = plainSeconds(n);
      std::printf("%zu vertices of %zu elements: %.0f us, plain loop %.0f us\n", kVertices, n,
                  codelet * 1e6, plain * 1e6);
      ratio = std::min(ratio, codelet / plain);
    }
    CHECK(ratio <= 3);
  }
}
