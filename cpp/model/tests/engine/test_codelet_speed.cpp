// The time of a codelet on all workers of an IPU, compared with the same loop in plain C++.
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
constexpr int kTurns = 20;

/// Processor time of all threads, because others may use the machine meanwhile.
template <class F>
double seconds(const F& run) {
  const std::clock_t begin = std::clock();
  run();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / kRepeats;
}

/// Element i of x.
float value(std::size_t i) { return static_cast<float>(i % 97) - 48; }

/// Runs the codelet on n elements a vertex, kRepeats times.
class CodeletProgram {
 public:
  explicit CodeletProgram(std::size_t n) : y_(kVertices * n) {
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
    d_.graph.addCodelets(source);
    const Tensor x = d_.graph.addVariable(FLOAT, {kVertices, n}, VariableMappingMethod::LINEAR);
    const Tensor y = d_.graph.addVariable(FLOAT, {kVertices, n}, VariableMappingMethod::LINEAR);
    const ComputeSet cs = d_.graph.addComputeSet();
    for (std::size_t i = 0; i < kVertices; ++i) {
      const VertexRef v = d_.graph.addVertex(cs, "Axpy", {{"x", x[i]}, {"y", y[i]}});
      d_.graph.setInitialValue(v["scale"], 0.5f);
      d_.graph.setTileMapping(v, static_cast<unsigned>(i / 6));
    }
    d_.graph.createHostWrite("x", x);
    d_.graph.createHostWrite("y", y);
    d_.graph.createHostRead("y", y);
    engine_ = std::make_unique<Engine>(
        d_.graph, program::Program(program::Repeat(kRepeats, program::Execute(cs))));
    engine_->load(Device(d_.graph.getTarget()));
    std::vector<float> values(kVertices * n);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(i);
    engine_->writeTensor("x", values.data(), values.data() + values.size());
    engine_->writeTensor("y", y_.data(), y_.data() + y_.size());
  }
  void run() { engine_->run(0); }
  const std::vector<float>& result() {
    engine_->readTensor("y", y_.data(), y_.data() + y_.size());
    return y_;
  }

 private:
  OnDevice d_;
  std::vector<float> y_;
  std::unique_ptr<Engine> engine_;
};

__attribute__((noinline)) void axpy(float* y, const float* x, float scale, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += scale * x[i];
}

struct Plain {
  explicit Plain(std::size_t size) : n(size), x(kVertices * n), y(kVertices * n) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = value(i);
  }
  void run() {
    for (unsigned r = 0; r < kRepeats; ++r)
      for (std::size_t i = 0; i < kVertices; ++i) axpy(y.data() + i * n, x.data() + i * n, 0.5f, n);
  }
  std::size_t n;
  std::vector<float> x, y;
};

}  // namespace

// Both take turns and the best of many counts, so that other load on the machine affects both.
// Tests share their machine, so `make bench` applies the bound to what this prints.
TEST(a_codelet_computes_what_a_plain_loop_does) {
  for (const std::size_t n : {std::size_t{64}, std::size_t{512}}) {
    CodeletProgram codelets(n);
    Plain plain(n);
    double codelet = 1e9, loop = 1e9;
    for (int turn = 0; turn < kTurns; ++turn) {
      codelet = std::min(codelet, seconds([&] { codelets.run(); }));
      loop = std::min(loop, seconds([&] { plain.run(); }));
    }
    std::printf("measured: codelet of %zu elements over a plain loop: %.3f (%.0f us, %.0f us)\n", n,
                codelet / loop, codelet * 1e6, loop * 1e6);
    CHECK(codelets.result() == plain.y);
  }
}
