// Sources of codelets written for IPUs, which use more than standard C++, are compiled and run.
// Long: sources of codelets, one for each form.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "Check.hpp"
#include "engine/Half.hpp"
#include "engine/image/Image.hpp"
#include "poplar/Program.hpp"
#include "popops/OnDevice.hpp"

using namespace poplar;
using ipujax::engine::floatToHalf;
using ipujax::engine::halfToFloat;
using Halves = std::vector<std::uint16_t>;

namespace {

Halves halves(const std::vector<float>& values) {
  Halves made;
  for (const float x : values) made.push_back(floatToHalf(x));
  return made;
}

void add(Graph& graph, const std::string& text, const std::string& flags = "") {
  std::istringstream source(text);
  graph.addCodelets(source, flags);
}

/// A tensor on tile 1 that a vertex writes.
Tensor result(Graph& graph, const Type& type, std::size_t n) {
  const Tensor t = graph.addVariable(type, {n}, "result");
  graph.setTileMapping(t, 1);
  return t;
}

VertexRef vertex(OnDevice& d, const std::string& type) {
  const ComputeSet cs = d.graph.addComputeSet();
  const VertexRef v = d.graph.addVertex(cs, type);
  d.graph.setTileMapping(v, 1);
  d.prog.add(program::Execute(cs));
  return v;
}

}  // namespace

TEST(half_rounds_after_every_operation) {
  OnDevice d;
  add(d.graph, R"src(
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>
#include <cmath>
    using namespace poplar;
    class Rounds : public Vertex {
     public:
      Input<Vector<half>> in;
      Output<Vector<half>> out;
      void compute() {
        const half a = in[0], b = in[1];
        out[0] = a * b - 1.0_h;  // the product rounds, although a sum follows
        out[1] = a + 1;          // integers become halves
        out[2] = b > 2 ? a : half(0.0f);
        out[3] = a > 0 ? std::fabs(-a) : 2.0f;
        out[4] = half(2049.0f);  // a tie, to even
        out[5] = std::isnan(out[4]) ? 1 : std::abs(half(-3));
        out[6] = std::numeric_limits<half>::max();
        out[6] += out[6];  // to infinity
      }
    };)src");
  const Tensor in = d.input<std::uint16_t>(HALF, {2}, halves({1.0009765625f, 1.0009765625f}));
  const Tensor out = result(d.graph, HALF, 7);
  const VertexRef v = vertex(d, "Rounds");
  d.graph.connect(v["in"], in);
  d.graph.connect(v["out"], out);
  // 1.0009765625^2 = 1.00195407...: its nearest half is 1.001953125.
  CHECK(d.read<std::uint16_t>(out) ==
        halves({0.001953125f, 2.0009765625f - 0.0009765625f, 0.0f, 1.0009765625f, 2048.0f, 3.0f,
                std::numeric_limits<float>::infinity()}));
}

namespace {

// Enumerations in a namespace as arguments, a specialisation with fields of its own, members that a
// graph cannot set, an alias that hides the template it is made of, a constructor without a body.
const char* const kScaled = R"src(
#include <poplar/Vertex.hpp>
#include <type_traits>
  using namespace poplar;
  static constexpr auto ALIGNED = VectorLayout::SCALED_PTR64;
  namespace lib {
  enum class Operation { ADD, MAX };
  template <class A, class S>
  using ComputeType = std::conditional_t<std::is_same<float, S>::value, float, A>;

  template <class A, class S, bool kConstant, Operation op>
  class [[poplar::constraint("elem(*a) != elem(*b)")]] Scaled
      : public SupervisorVertexIf<ASM_CODELETS_ENABLED> {
   public:
    Scaled();
    using ComputeType = ComputeType<A, S>;
    static const bool isExternalCodelet = true;
    InOut<Vector<A, ALIGNED, 8>> a;
    unsigned short size;
    Input<Vector<A, ALIGNED, 8>> b;
    const S scale;
    struct {
      int unused;
    } state;
    float scratch[4];
    __attribute__((target("supervisor"))) bool compute() {
      for (unsigned i = 0; i < size; ++i) {
        const A x = static_cast<A>(ComputeType(scale) * ComputeType(b[i]));
        a[i] = op == Operation::ADD ? a[i] + x : a[i] < x ? x : a[i];
      }
      return true;
    }
  };
  template <class A, class S, Operation op>
  class Scaled<A, S, false, op> : public Vertex {
   public:
    Scaled();
    InOut<Vector<A, ALIGNED, 8>> a;
    Input<Vector<A, ALIGNED, 8>> b;
    Input<Vector<S, ALIGNED, 8>> scale;
    const unsigned short count;
    bool compute() {
      for (unsigned i = 0; i < count; ++i) a[i] += static_cast<A>(scale[0] * b[i]);
      return true;
    }
  };
  template class Scaled<float, float, true, Operation::MAX>;
  template class Scaled<half, half, true, Operation::ADD>;
  template class Scaled<float, float, false, Operation::ADD>;
  }  // namespace lib)src";

}  // namespace

TEST(types_are_named_in_the_namespace_of_their_class) {
  for (const char* type : {"lib::Scaled<float,float,true,lib::Operation::MAX>",
                           "lib::Scaled<float, float, true, Operation::MAX>"}) {
    OnDevice d;
    add(d.graph, kScaled);
    const Tensor a = d.input<float>(FLOAT, {3}, {1, 5, 3});
    const Tensor b = d.input<float>(FLOAT, {3}, {1, 1, 2});
    const VertexRef v = vertex(d, type);
    d.graph.connect(v["a"], a);
    d.graph.connect(v["b"], b);
    d.graph.setInitialValue(v["size"], 3);
    d.graph.setInitialValue(v["scale"], 2.0f);
    CHECK(d.read<float>(a) == (std::vector<float>{2, 5, 4}));
  }
}

TEST(specialisations_have_fields_of_their_own) {
  OnDevice d;
  add(d.graph, kScaled);
  const Tensor a = d.input<float>(FLOAT, {2}, {1, 2});
  const Tensor b = d.input<float>(FLOAT, {2}, {10, 20});
  const Tensor scale = d.input<float>(FLOAT, {1}, {0.5f});
  const VertexRef v = vertex(d, "lib::Scaled<float,float,false,lib::Operation::ADD>");
  d.graph.connect(v["a"], a);
  d.graph.connect(v["b"], b);
  d.graph.connect(v["scale"], scale);
  d.graph.setInitialValue(v["count"], 2);
  CHECK(d.read<float>(a) == (std::vector<float>{6, 12}));
}

TEST(codelets_may_have_bases) {
  for (const bool derived : {true, false}) {
    OnDevice d;
    add(d.graph, R"src(
      #include <poplar/Vertex.hpp>
      using namespace poplar;
      class Common : public Vertex {
       public:
        Input<Vector<float>> in;
       protected:
        float first() { return in[0]; }
      };
      class Derived : public Common {
       private:
        Output<float> out;
       public:
        bool compute() { *out = first() + 1; return true; }
      };)src");
    const Tensor in = d.input<float>(FLOAT, {1}, {4});
    const Tensor out = result(d.graph, FLOAT, 1);
    const VertexRef v = vertex(d, derived ? "Derived" : "Common");
    d.graph.connect(v["in"], in);
    if (derived) {
      d.graph.connect(v["out"], out[0]);
      CHECK_EQ(d.read<float>(out)[0], 5.0f);
    } else {
      CHECK_THROWS(d.read<float>(in), "a Common on tile 1 said: it has no compute()");
    }
  }
}

TEST(sources_may_bring_vectors_of_their_own) {
  OnDevice d;
  add(d.graph, R"src(
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>
    template <class T, unsigned N>
    struct Pack {
      T lane[N];
      T operator[](unsigned i) const { return lane[i]; }
    };
    using float2 = Pack<float, 2>;
    using rptsize_t = uint16_t;
    namespace ipu {
    template <class T>
    T load_postinc(T const** from, int step) {
      T const* p = *from;
      *from += step;
      return *p;
    }
    }  // namespace ipu
    using namespace poplar;
    class Own : public Vertex {
     public:
      Input<Vector<float, VectorLayout::ONE_PTR, 8>> in;
      Output<float> out;
      bool compute() {
        const float2* p = reinterpret_cast<const float2*>(in.data());
        ipu::load_postinc(&p, 1);
        *out = ipu::load_postinc(&p, 1)[1];
        return true;
      }
    };)src");
  const Tensor in = d.iota({4});
  const Tensor out = result(d.graph, FLOAT, 1);
  const VertexRef v = vertex(d, "Own");
  d.graph.connect(v["in"], in);
  d.graph.connect(v["out"], out[0]);
  CHECK_EQ(d.read<float>(out)[0], 3.0f);
}

TEST(one_file_may_hold_codelets_and_their_program) {
  OnDevice d;
  add(d.graph, R"src(
#ifdef __POPC__
#include <ipudef.h>
#include <poplar/Loops.hpp>
#include <poplar/Vertex.hpp>
    class Blur : public poplar::Vertex {
     public:
      poplar::Input<poplar::Vector<float, poplar::VectorLayout::SCALED_PTR32, 4, false>> in;
      poplar::InOut<poplar::Vector<float>> out;
      poplar::InOut<unsigned> count;
      bool compute() {
        auto pairs = reinterpret_cast<float2*>(&in[0]);
        const float2 sum = 1.f / 4 * (pairs[0] + pairs[1]) + pairs[0];
        for (poplar::rptsize_t i = 0; i < 2; ++i) out[i] = sum[i];
        count++;
        count += 2;
        return true;
      }
    };
#else
    int main() {}
#endif)src");
  const Tensor in = d.iota({4});
  const Tensor out = result(d.graph, FLOAT, 2);
  const Tensor count = d.input<unsigned>(UNSIGNED_INT, {}, {4});
  const VertexRef v = vertex(d, "Blur");
  d.graph.connect(v["in"], in);
  d.graph.connect(v["out"], out);
  d.graph.connect(v["count"], count);
  CHECK(d.read<float>(out) == (std::vector<float>{0.5f, 2.0f}));
}

TEST(quarters_convert_by_their_metadata) {
  OnDevice d;
  add(d.graph, R"src(
#include <poplar/HalfFloat.hpp>
#include <poplar/QuarterFloat.hpp>
#include <poplar/Vertex.hpp>
    using namespace poplar;
    class Widen : public Vertex {
     public:
      Input<Vector<quarter>> in;
      Output<Vector<half>> out;
      void compute() {
        const quarter_metadata f152 = {quarter_metadata::f152, 0}, scaled = {quarter_metadata::f143, 2};
        quarter_metadata f143 = f152;
        f143.fmt = *in.getMetadata() & 0x80 ? quarter_metadata::f143 : quarter_metadata::f152;
        for (unsigned i = 0; i < 4; ++i) out[i] = toHalf(in[i], f143);
        out[4] = toHalf(in[1], f152);
        out[5] = toHalf(in[1], scaled);
        unsigned wrong = 0;
        for (unsigned bits = 0; bits < 256; ++bits)
          for (const auto& m : {f143, f152, scaled})
            wrong += bits != 0x80 && toQuarter(toFloat({(unsigned char)bits}, m), m).bits != bits;
        out[6] = wrong;
        out[7] = toFloat(toQuarter(1000.0f, f143), f143);
      }
    };)src");
  // 1.4.3 with bias 8: 0x40 is 2^(8-8), 0x7f is 1.875 x 2^7, 0x01 is 2^(1-8-3).
  const Tensor in = d.input<std::uint8_t>(UNSIGNED_CHAR, {4}, {0x40, 0x7f, 0x01, 0x80});
  const Tensor out = result(d.graph, HALF, 8);
  const VertexRef v = vertex(d, "Widen");
  d.graph.connect(v["in"], in);
  d.graph.connect(v["out"], out);
  const Halves got = d.read<std::uint16_t>(out);
  const std::vector<float> expected = {1, 240, 0x1p-10f, NAN, 57344, 960, 0, 240};
  for (std::size_t i = 0; i < 8; ++i) CHECK_NEAR(halfToFloat(got[i]), expected[i], 0);
}

TEST(functions_may_be_defined_in_another_file) {
  for (const bool definition_first : {false, true}) {
    OnDevice d;
    const auto define = [&] { add(d.graph, "float twice(float x) { return 2 * x; }"); };
    if (definition_first) define();
    add(d.graph, R"src(
#include <poplar/Vertex.hpp>
      float twice(float x);
      class Twice : public poplar::Vertex {
       public:
        poplar::InOut<float> x;
        bool compute() {
          *x = twice(*x);
          return true;
        }
      };
      class Elsewhere : public poplar::Vertex {
       public:
        poplar::InOut<float> x;
        bool compute();
      };)src");
    if (!definition_first) define();
    const Tensor x = d.input<float>(FLOAT, {1}, {21});
    const VertexRef v = vertex(d, "Twice");
    d.graph.connect(v["x"], x[0]);
    CHECK_EQ(d.read<float>(x)[0], 42.0f);
    // A type without a body is an error if a vertex has it.
    const VertexRef missing = vertex(d, "Elsewhere");
    d.graph.connect(missing["x"], x[0]);
    try {
      compileGraph(d.graph, {d.prog});
      CHECK(false);
    } catch (const link_error& e) {
      CHECK(std::string(e.what()).find("Elsewhere::compute") != std::string::npos);
    }
  }
}

TEST(headers_are_there_where_a_branch_before_skipped_them) {
  const auto folder = std::filesystem::temp_directory_path() / "ipujax_codelet_headers";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "common.hpp") << "#pragma once\n#include \"rows.def\"\n";
  std::ofstream(folder / "ipu.hpp") << "#include \"common.hpp\"\n";
  std::ofstream(folder / "rows.def") << "ROW(1)\n";
  std::ofstream(folder / "sum.cpp")
      << "#include <poplar/Vertex.hpp>\n#define ROW(n) static const int row = n;\n"
         "#ifdef __IPU__\n#include \"ipu.hpp\"\n#endif\n#include \"common.hpp\"\n"
         "#include \"common.hpp\"\n#undef ROW\n#define ROW(n) static const int last = n + 1;\n"
         "#include \"rows.def\"\n"
         "struct Sum : poplar::Vertex { poplar::Output<int> out;\n"
         " bool compute() { *out = row + last; return true; } };\n";
  OnDevice d;
  d.graph.addCodelets((folder / "sum.cpp").string());
  std::filesystem::remove_all(folder);
  const Tensor out = result(d.graph, INT, 1);
  const VertexRef v = vertex(d, "Sum");
  d.graph.connect(v["out"], out[0]);
  CHECK_EQ(d.read<int>(out)[0], 3);
}

TEST(what_fails_in_a_codelet_is_an_error_of_the_program) {
  OnDevice d;
  add(d.graph, R"src(
#include <poplar/Vertex.hpp>
#include <cassert>
    class Asserts : public poplar::Vertex {
     public:
      poplar::InOut<int> x;
      bool compute() {
        assert(*x < 3);
        return true;
      }
    };)src");
  const Tensor x = d.input<int>(INT, {1}, {7});
  const VertexRef v = vertex(d, "Asserts");
  d.graph.connect(v["x"], x[0]);
  CHECK_THROWS(d.read<int>(x), "codelets.cpp:8: assert(*x < 3)");
}

TEST(the_first_worker_may_wait_for_the_others) {
  OnDevice d;
  add(d.graph, R"src(
#include <poplar/Vertex.hpp>
    class Meet : public poplar::MultiVertex {
     public:
      static float partial[6];
      poplar::Output<float> out;
      bool compute(unsigned worker) {
        partial[worker] = worker + 1;
        if (worker != 0) return true;
        float sum = partial[0];
        for (unsigned w = 1; w < numWorkers(); ++w) {
          volatile float* theirs = &partial[w];
          while (*theirs < 0) {
          }
          sum += *theirs;
        }
        *out = sum;
        return true;
      }
    };
    float Meet::partial[6] = {-1, -1, -1, -1, -1, -1};)src");
  const Tensor out = result(d.graph, FLOAT, 1);
  const VertexRef v = vertex(d, "Meet");
  d.graph.connect(v["out"], out[0]);
  CHECK_EQ(d.read<float>(out)[0], 21.0f);
}

TEST(workers_that_wait_for_one_another_run_side_by_side) {
  OnDevice d;
  add(d.graph, R"src(
#include <poplar/Vertex.hpp>
    class Steps : public poplar::MultiVertex {
     public:
      poplar::InOut<poplar::Vector<unsigned>> arrived, counts;
      bool compute(unsigned worker) {
        counts[worker] = worker + 1;
        barrier(worker);
        unsigned sum = 0;
        for (unsigned w = 0; w < numWorkers(); ++w) sum += counts[w];
        barrier(worker);
        counts[worker] = sum * 10 + worker;
        return true;
      }
      void barrier(unsigned worker) {
        volatile unsigned* all = &arrived[0];
        const unsigned mine = all[worker] + 1;
        all[worker] = mine;
        asm volatile("" ::: "memory");
        for (unsigned w = 0; w < numWorkers(); ++w)
          while (all[w] < mine) {
          }
        asm volatile("" ::: "memory");
      }
    };)src");
  const Tensor arrived = d.input<unsigned>(UNSIGNED_INT, {3, 6}, std::vector<unsigned>(18));
  const Tensor counts = result(d.graph, UNSIGNED_INT, 18).reshape({3, 6});
  const ComputeSet cs = d.graph.addComputeSet();
  for (unsigned i = 0; i < 3; ++i) {
    d.graph.setTileMapping(
        d.graph.addVertex(cs, "Steps", {{"arrived", arrived[i]}, {"counts", counts[i]}}), i);
  }
  d.prog.add(program::Execute(cs));
  const auto read = d.read<unsigned>(counts.flatten());
  for (unsigned i = 0; i < 18; ++i) CHECK_EQ(read[i], 210 + i % 6);
}

TEST(a_worker_that_fails_ends_the_program_of_those_beside_it) {
  OnDevice d;
  add(d.graph, R"src(
#include <poplar/Vertex.hpp>
    class Fails : public poplar::MultiVertex {
     public:
      poplar::InOut<poplar::Vector<unsigned>> flags;
      bool compute(unsigned worker) {
        volatile unsigned* go = &flags[0];
        if (worker == 0) *go = 1;
        while (*go == 0) {
        }
        return worker != 3;
      }
    };)src");
  const Tensor flags = d.input<unsigned>(UNSIGNED_INT, {6}, std::vector<unsigned>(6));
  const VertexRef v = vertex(d, "Fails");
  d.graph.connect(v["flags"], flags);
  CHECK_THROWS(d.read<unsigned>(flags), "a Fails on tile 1, worker 3 returned false");
}

TEST(cycles_are_the_codelets_own_estimate_or_from_its_loop) {
  const auto cycles = [](const char* type, std::size_t n, bool perf_estimate) {
    OnDevice d;
    add(d.graph, R"src(
      #include <poplar/Vertex.hpp>
      using namespace poplar;
      class Estimates : public Vertex {
       public:
        Vector<InOut<Vector<float>>> rows;
        unsigned factor;
        bool compute() { return true; }
        uint64_t getCycleEstimate() const { return 1000 + factor * rows[1].size(); }
      };
      class Loops : public Vertex {
       public:
        Vector<InOut<Vector<float>>> rows;
        unsigned factor;
        bool compute() {
          for (unsigned r = 0; r < rows.size(); ++r)
            for (unsigned i = 0; i < factor; ++i) rows[r][i] += factor;
          return true;
        }
      };)src");
    const Tensor x = d.graph.addVariable(FLOAT, {2, n}, "x");
    d.graph.setTileMapping(x, 1);
    const VertexRef v = vertex(d, type);
    d.graph.connect(v["rows"], x);
    d.graph.setInitialValue(v["factor"], 3);
    if (perf_estimate) d.graph.setPerfEstimate(v, 50);
    return compileGraph(d.graph, {d.prog}).image()->cost().compute_cycles;
  };
  // A worker gets every sixth cycle. A subscript of a row and one of an element, a sum, the loop.
  CHECK_EQ(cycles("Estimates", 100, false) - cycles("Estimates", 10, false), 6 * 3 * 90);
  CHECK_EQ(cycles("Loops", 100, false) - cycles("Loops", 10, false), 6 * 4 * 90);
  CHECK_EQ(cycles("Estimates", 100, true), cycles("Loops", 10, true));
}
