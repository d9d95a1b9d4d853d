// Cycles of codelets that use intrinsics, counted by running them on zeros.
#include <sstream>

#include "Check.hpp"
#include "engine/codelets/BlockCounts.hpp"
#include "engine/image/Image.hpp"
#include "poplar/Program.hpp"
#include "popops/OnDevice.hpp"

using namespace poplar;

namespace {

constexpr const char* kCodelets = R"src(
  #include <ipu_intrinsics>
  #include <poplar/Vertex.hpp>
  using namespace poplar;

  class Maxima : public Vertex {
   public:
    Input<Vector<half>> in;
    InOut<Vector<half>> out;
    bool compute() {
      const half4* from = reinterpret_cast<const half4*>(&in[0]);
      half4* to = reinterpret_cast<half4*>(&out[0]);
      for (unsigned i = 0; i < in.size() / 4; ++i) {
        const half4 a = ipu::load_postinc(&from, 1);
        ipu::store_postinc(&to, __builtin_ipu_f16v4max(a, *to), 1);
      }
      return true;
    }
  };
  class Exponentials : public MultiVertex {
   public:
    Input<Vector<half>> in;
    InOut<Vector<half>> out;
    bool compute(unsigned worker) {
      for (unsigned i = worker; i < in.size(); i += numWorkers()) out[i] = ipu::exp(in[i]);
      return true;
    }
  };
  class Divides : public Vertex {  // by zero, where there are zeros
   public:
    Input<Vector<half>> in;
    InOut<Vector<half>> out;
    bool compute() {
      const int by = in[0];
      out[0] = 7 / by;
      for (unsigned i = 0; i < in.size(); ++i) out[i] = ipu::fabs(in[i]);
      return true;
    }
  };
  class Waits : public Vertex {  // for a one
   public:
    Input<Vector<half>> in;
    InOut<Vector<half>> out;
    bool compute() {
      while (*const_cast<const volatile half*>(&in[0]) == 0);
      for (unsigned i = 0; i < in.size(); ++i) out[i] = ipu::fabs(in[i]);
      return true;
    }
  };
)src";

/// Cycles of all compute sets of one vertex over n halves.
double cyclesOf(const char* type, std::size_t n, bool estimate = false) {
  OnDevice d;
  std::istringstream source(kCodelets);
  d.graph.addCodelets(source);
  const Tensor in = d.graph.addVariable(HALF, {n}, "in");
  const Tensor out = d.graph.addVariable(HALF, {n}, "out");
  d.graph.setTileMapping(in, 1);
  d.graph.setTileMapping(out, 1);
  const ComputeSet cs = d.graph.addComputeSet();
  const VertexRef v = d.graph.addVertex(cs, type, {{"in", in}, {"out", out}});
  d.graph.setTileMapping(v, 1);
  if (estimate) d.graph.setPerfEstimate(v, 1000);
  d.prog.add(program::Execute(cs));
  return compileGraph(d.graph, {d.prog}).image()->cost().compute_cycles;
}

}  // namespace

TEST(blocks_of_a_source_count_their_operations) {
  const auto counted = ipujax::engine::withBlockCounts;
  const std::string ran = "::ipujax_cycles::ran(";
  CHECK_EQ(counted("void f() { a = b * c; }"), "void f() {" + ran + "1); a = b * c; }");
  CHECK_EQ(counted("f() {for (i = 0; i < n; ++i) a[i] += 1;}"),
           "f() {for (i = 0; i < n; ++i) {" + ran + "3);a[i] += 1;}}");
  CHECK_EQ(counted("f() {if (a[0]) b(); else while (*p);}"),
           "f() {" + ran + "1);if (a[0]) {" + ran + "0);b();} else {" + ran + "0);while (*p){" +
               ran + "2);;}}}");
  CHECK_EQ(counted("f() {do --x; while (x > y);}"), "f() {do {" + ran + "2);--x;} while (x > y);}");
  CHECK_EQ(counted("int a[] = {1 + 2}; struct S {int x = 1 + 2;};"),
           "int a[] = {1 + 2}; struct S {int x = 1 + 2;};");
  CHECK_EQ(counted("# 1 \"x.h\" 1 3\nf() {a + b;}\n# 1 \"x.cpp\" 2\nf() {\"{\" + '}';}"),
           "# 1 \"x.h\" 1 3\nf() {a + b;}\n# 1 \"x.cpp\" 2\nf() {" + ran + "1);\"{\" + '}';}");
}

// A worker gets every sixth cycle.
TEST(intrinsics_count_their_issue_slots) {
  // A load, the subject of *to, the maximum, a store and the loop: 5 for 4 halves.
  CHECK_EQ(cyclesOf("Maxima", 400) - cyclesOf("Maxima", 40), 6.0 * 5 * 90);
  // Two subscripts, exp by two and the loop, in the worker with most elements.
  CHECK_EQ(cyclesOf("Exponentials", 600) - cyclesOf("Exponentials", 60), 6.0 * 5 * 90);
  CHECK_EQ(cyclesOf("Exponentials", 61), cyclesOf("Exponentials", 66));
  CHECK_EQ(cyclesOf("Maxima", 400), cyclesOf("Maxima", 400));
  CHECK_EQ(cyclesOf("Maxima", 400, true), cyclesOf("Exponentials", 40, true) - 1000 + 6000);
}

TEST(what_cannot_be_counted_is_assumed) {
  // Two subscripts and the loop, by the source.
  CHECK_EQ(cyclesOf("Divides", 100) - cyclesOf("Divides", 10), 6.0 * 3 * 90);
  CHECK_EQ(cyclesOf("Waits", 100) - cyclesOf("Waits", 10), 6.0 * 3 * 90);
}

TEST(a_tile_clock_read_in_a_codelet_gives_what_is_counted) {
  OnDevice d;
  std::istringstream source(R"src(
    #include <ipu_intrinsics>
    #include <poplar/Vertex.hpp>
    using namespace poplar;
    class Reads : public Vertex {
     public:
      Output<Vector<unsigned>> out;
      bool compute() {
        const unsigned begin = __builtin_ipu_get_scount_l();
        float2 sum = {1, 2};
        for (int i = 0; i < 10; ++i) sum = __builtin_ipu_max(ipu::exp(sum), float2{3, 4});
        const unsigned end = __builtin_ipu_get_scount_l();
        out[0] = begin;
        out[1] = end;
        out[2] = sum[0] > 3;
        return true;
      }
    };)src");
  d.graph.addCodelets(source);
  const Tensor out = d.graph.addVariable(UNSIGNED_INT, {2, 3}, "out");
  d.graph.setTileMapping(out, 0);
  for (const std::size_t run : {0, 1}) {
    const ComputeSet cs = d.graph.addComputeSet();
    const VertexRef v = d.graph.addVertex(cs, "Reads", {{"out", out[run]}});
    d.graph.setTileMapping(v, 0);
    d.prog.add(program::Execute(cs));
  }
  const auto got = d.read<unsigned>(out);
  CHECK_EQ(got[1] - got[0], 6 * 10 * (1 + 6 + 1u));  // the loop, two exp of float, the maximum
  CHECK_EQ(got[4] - got[3], got[1] - got[0]);
  CHECK_EQ(got[2], 1u);
  CHECK(got[3] >= got[1]);  // the second compute set is later
}
