// Intrinsics out of range are errors of the program; accesses that IPUs allow are not.
#include <sstream>

#include "Check.hpp"
#include "engine/Errors.hpp"
#include "poplar/Program.hpp"
#include "popops/OnDevice.hpp"

using namespace poplar;

namespace {

/// Runs statements in one vertex on 8 floats, in = 1, 2, ... 8; returns `out`.
std::vector<float> run(const std::string& statements, bool estimate = false) {
  OnDevice d;
  std::istringstream source(R"src(
    #include <ipu_intrinsics>
    #include <poplar/Vertex.hpp>
    using namespace poplar;
    static const float kTable[4] = {1, 2, 3, 4};
    class Runs : public Vertex {
     public:
      Input<Vector<float>> in;
      Output<Vector<float>> out;
      bool compute() {
        const float* from = &in[0];
        float* to = &out[0];
  )src" + statements + "return true; } };");
  d.graph.addCodelets(source);
  const Tensor in = d.input<float>(FLOAT, {8}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor out = d.graph.addVariable(FLOAT, {8}, VariableMappingMethod::LINEAR, "out");
  const ComputeSet cs = d.graph.addComputeSet();
  const VertexRef v = d.graph.addVertex(cs, "Runs", {{"in", in}, {"out", out}});
  d.graph.setTileMapping(v, 0);
  if (estimate) d.graph.setPerfEstimate(v, 10);
  d.prog.add(program::Execute(cs));
  return d.read<float>(out);
}

template <class F>
void fails(const F& f, const std::string& part) {
  try {
    f();
  } catch (const application_runtime_error& e) {
    CHECK_THROWS(throw e, part);
    return;
  }
  CHECK(!"nothing was thrown");
}

}  // namespace

TEST(loads_and_stores_beyond_a_tensor) {
  for (const bool estimate : {false, true}) {
    fails([&] { run("for (int i = 0; i < 100; ++i) ipu::store_postinc(&to, 1.0f, 1);", estimate); },
          "store_postinc");
    fails([&] { run("for (int i = 0; i < 99; ++i) *to = ipu::load_postinc(&from, 1);", estimate); },
          "load_postinc");
  }
  fails([&] { run("ipu::store_postinc(&to, 1.0f, -1); ipu::store_postinc(&to, 1.0f, 1);"); },
        "store_postinc");
}

TEST(loads_and_stores_where_they_may) {
  // A loop that loads the next element before it needs it.
  const auto got = run(R"cpp(
    float next = ipu::load_postinc(&from, 1);
    for (int i = 0; i < 8; ++i) {
      const float now = next;
      next = ipu::load_postinc(&from, 1);
      ipu::store_postinc(&to, now + 1, 1);
    })cpp");
  CHECK(got == (std::vector<float>{2, 3, 4, 5, 6, 7, 8, 9}));
  // Arrays of the codelet, and tables of its source.
  const auto own = run(R"cpp(
    float local[4];
    float* l = local;
    const float* t = kTable;
    for (int i = 0; i < 4; ++i) ipu::store_postinc(&l, 2 * ipu::load_postinc(&t, 1), 1);
    for (int i = 0; i < 8; ++i) out[i] = local[i % 4];)cpp");
  CHECK(own == (std::vector<float>{2, 4, 6, 8, 2, 4, 6, 8}));
}

TEST(registers_that_are_not_there) {
  fails([] { run("__builtin_ipu_put(1u, 256);"); }, "from 0 to 255; got 256");
  fails([] { run("out[0] = __builtin_ipu_get(-1);"); }, "got -1");
  fails([] { run("out[0] = __builtin_ipu_uget(1000);"); }, "got 1000");
  fails([] { run("__builtin_ipu_uputf(1.0f, 300);"); }, "got 300");
}
