#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <popops/Cast.hpp>
#include <sstream>

#include "Check.hpp"
#include "Codelets.hpp"

/// Codelets in the forms of public ones, in addition to those of cpp/model/tests/engine.
using namespace poplar;
using namespace poplar::program;

TEST(sources_that_refuse_hosts_are_compiled_as_for_an_ipu) {
  Fixture f;
  add(f, R"src(
#ifndef __IPU__
#error hosts are of no use here
#endif
#include <ipu_vector_math>
#include <poplar/Vertex.hpp>
    class Sums : public poplar::Vertex {
     public:
      poplar::Input<poplar::Vector<float>> in;
      poplar::Output<poplar::Vector<float>> out;
      bool compute() {
        const half4 v = {half(in[0]), half(in[1]), half(in[2]), half(in[3])};
        const float2 pairs = ipu::sum(v);  // as f16v4sum: of the first and the last two
        const half2 most = half2_fmax(half2{v[0], v[1]}, half2{v[2], v[3]});
        const half2 least = half2_fmin(half2{v[0], v[1]}, half2{v[2], v[3]});
        out[0] = pairs[0];
        out[1] = pairs[1];
        out[2] = most[0] + most[1];
        out[3] = least[0] - least[1];
        return true;
      }
    };)src");
  const Tensor in = f.constant<float>({4}, {1, -8, 3, 4});
  CHECK(run<float>(f, "Sums", {{"in", in}}, 4) == (std::vector<float>{-7, 7, 7, 9}));
}

TEST(what_is_wrong_for_hosts_and_for_ipus_is_told_for_hosts) {
  Fixture f;
  CHECK_THROWS(add(f, "#ifdef __IPU__\n#error for no IPU\n#else\n#error for no host\n#endif\n"),
               "for no host");
  CHECK_THROWS(add(f, "#error for nobody\n"), "for nobody");
}

TEST(edges_are_indexed_by_what_floor_gives_and_members_may_be_volatile) {
  Fixture f;
  add(f, R"src(
#include <StackSizeDefs.hpp>
#include <poplar/Vertex.hpp>
#include <cmath>
    class Steps : public poplar::Vertex {
      volatile unsigned step;

     public:
      poplar::Input<poplar::Vector<int>> in;
      poplar::Output<poplar::Vector<int>> out;
      bool compute() {
        step = 0;
        for (float at = 0; at < 3; at += 0.5f) {
          out[step] = in[std::floor(at)];
          step = step + 1;
        }
        return true;
      }
    };
    DEF_STACK_USAGE(64, __runCodelet_Steps);)src");
  const Tensor in = f.constant<int>({3}, {4, 5, 6});
  CHECK(run<int>(f, "Steps", {{"in", in}}, 6) == (std::vector<int>{4, 4, 5, 5, 6, 6}));
}

TEST(headers_of_the_libraries_bring_types_to_codelets_and_no_functions) {
  Fixture f;
  add(f, R"src(
#include <popnn/Loss.hpp>
#include <popnn/NonLinearity.hpp>
#include <poplar/Vertex.hpp>
#include <cmath>
    namespace popnn {
    float apply(NonLinearityType type, float x) {
      return type == NonLinearityType::TANH ? tanh(x) : 2 * x;  // the function of <cmath>
    }
    template <NonLinearityType type, LossType loss>
    struct Applied : poplar::Vertex {
      poplar::Input<poplar::Vector<float>> in;
      poplar::Output<poplar::Vector<float>> out;
      bool compute() {
        out[0] = apply(type, in[0]);
        out[1] = loss;
        return true;
      }
    };
    template struct Applied<NonLinearityType::TANH, CROSS_ENTROPY_LOSS>;
    template struct Applied<NonLinearityType::RELU, SUM_SQUARED_LOSS>;
    })src");
  const Tensor in = f.constant<float>({1}, {0.5f});
  const auto made = run<float>(
      f, "popnn::Applied<popnn::NonLinearityType::TANH,popnn::LossType::CROSS_ENTROPY_LOSS>",
      {{"in", in}}, 2);
  CHECK(std::abs(made[0] - 0.46211716f) < 1e-6f);
  CHECK_EQ(made[1], 1.0f);
}

TEST(functions_of_codelets_take_edges_as_vectors) {
  Fixture f;
  add(f, R"src(
#include <poplar/Vertex.hpp>
#include <cmath>
    static const float M_PI = 3.0f;  // rounded to taste
    class Pass : public poplar::Vertex {
      static float total(const poplar::Vector<float> &v) {
        float sum = 0;
        for (float x : v) sum += x;
        return sum;
      }
      template <typename T>
      static float longest(T &, poplar::Vector<float> &v) { return v[v.size() - 1]; }
      void put(poplar::Vector<float> &v, unsigned at, float x) { v[at] = x; }

     public:
      poplar::Input<poplar::Vector<float>> in;
      poplar::Output<poplar::Vector<float>> out;
      bool compute() {
        put(out, 0, total(in));
        put(out, 1, longest(out, in));
        put(out, 2, M_PI);
        return true;
      }
    };)src");
  const Tensor in = f.constant<float>({3}, {1, 2, 4});
  CHECK(run<float>(f, "Pass", {{"in", in}}, 3) == (std::vector<float>{7, 4, 3}));
}

TEST(constant_members_of_multi_vertices_are_set_and_others_are_shared) {
  Fixture f;
  add(f, R"src(
#include <poplar/Vertex.hpp>
    class Turns : public poplar::MultiVertex {
     public:
      Turns();
      poplar::Output<poplar::Vector<unsigned>> out;
      const unsigned first;
      unsigned turns;
      bool compute(unsigned worker) {
        out[worker] = first + turns++;
        return true;
      }
    };)src");
  const Tensor out = f.graph.addVariable(UNSIGNED_INT, {6});
  const ComputeSet cs = f.graph.addComputeSet();
  const VertexRef v = f.graph.addVertex(cs, "Turns");
  f.graph.connect(v["out"], out);
  f.graph.setInitialValue(v["first"], 10u);
  f.graph.setInitialValue(v["turns"], 0u);
  f.graph.setTileMapping(v, 1);
  f.graph.setTileMapping(out, 1);
  f.prog.add(Execute(cs));
  // The last worker runs first.
  CHECK(f.run<unsigned>(out) == (std::vector<unsigned>{15, 14, 13, 12, 11, 10}));
}

TEST(lists_in_braces_are_assigned_to_vectors) {
  Fixture f;
  add(f, R"src(
#include <ipudef.h>
#include <poplar/TileConstants.hpp>
#include <poplar/Vertex.hpp>
    struct Pairs { float2 both[2]; };
    template <typename T> struct Mixer;
    template <> struct Mixer<float> {
      static inline constexpr float2 kNone = {0.0f, 0.0f};
      static void mix(const float2 &a, const float2 &b, float2 &x, float2 &y) {
        x = { a[0], b[1]} ;  // = {
        y = { a[1],
              b[0]};
      }
    };
    class Mixed : public poplar::Vertex {
     public:
      poplar::Input<poplar::Vector<float, poplar::VectorLayout::ONE_PTR, 8>> in;
      poplar::Output<poplar::Vector<float>> out;
      bool compute() {
        const float2 *pairs = reinterpret_cast<const float2 *>(&in[0]);
        float2 x = Mixer<float>::kNone, y = Mixer<float>::kNone;
        Mixer<float>::mix(pairs[0], pairs[1], x, y);
        Pairs p;
        Pairs *q = &p;
        switch (int(in[0])) {
          case 1:
            y = {y[0], y[1]};
        }
        if (in[0] < 0) p.both[0] = {x[0], 0}; else q->both[0] = {y[0], x[1]};
        q->both[CONV_UNIT_INPUT_LOAD_ELEMS_FLOAT / 2] = {y[1], x[0]};
        for (unsigned i = 0; i < 4; ++i) out[i] = p.both[i / 2][i % 2];
        return true;
      }
    };)src");
  const Tensor in = f.constant<float>({4}, {1, 2, 3, 4});
  CHECK(run<float>(f, "Mixed", {{"in", in}}, 4) == (std::vector<float>{2, 4, 3, 1}));
}

TEST(what_is_wrong_beside_a_list_in_braces_is_told_of_the_users_line) {
  Fixture f;
  CHECK_THROWS(add(f, R"src(
#include <ipudef.h>
#include <poplar/Vertex.hpp>
    class Wrong : public poplar::Vertex {
     public:
      poplar::Output<float> out;
      bool compute() {
        float2 x;
        x = {1.0f, 2.0f};
        *out = x[0] + unknown;
        return true;
      }
    };)src"),
               "unknown");
}

namespace {

/// Supervisors that start their tile's workers with the IPU's instructions, as public ones do.
const char* const kStarts = R"src(
#include <poplar/Vertex.hpp>
#include <tilearch.h>
using namespace poplar;
class Piece : public Vertex {
 public:
  Input<Vector<int>> in;
  Output<Vector<int>> out;
  bool compute() {
    const unsigned id = __builtin_ipu_get(CSR_W_WSR__INDEX) & CSR_W_WSR__CTXTID_M1__MASK;
    for (unsigned i = id; i < in.size(); i += CTXT_WORKERS) out[i] = 10 * in[i] + id;
    return true;
  }
};
class BySymbol : public SupervisorVertex {
 public:
  Input<Vector<int>> in;
  Output<Vector<int>> out;
  __attribute__((target("supervisor"))) bool compute() {
    __asm__ volatile(
        "setzi $m1, __runCodelet_Piece\n"
        "runall $m1, $m0 , 0 \n"
        "sync %[zone]\n" ::[zone] "i"(TEXCH_SYNCZONE_LOCAL));
    out[0] += 1000;
    return true;
  }
};
template <typename T>
class ByFunction : public SupervisorVertex {
  template <bool (ByFunction<T>::*kFunction)(unsigned)>
  static bool entry() {
    return (static_cast<ByFunction<T> *>(__builtin_ipu_get_vertex_base())->*kFunction)(
        __builtin_ipu_get(CSR_W_WSR__INDEX) & CSR_W_WSR__CTXTID_M1__MASK);
  }
  template <bool (ByFunction<T>::*kFunction)(unsigned)>
  void start() {
    void *vertex = reinterpret_cast<void *>(this);
    asm(R"l(
          sync %[zone] ; runall %2, %[vertex], 0
        )l"
        :
        : [zone] "i"(TEXCH_SYNCZONE_LOCAL), [vertex] "r"(vertex), "r"(&entry<kFunction>)
        : "memory");
  }

 public:
  Input<Vector<T>> in;
  Output<Vector<T>> out;
  volatile unsigned char round;
  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i) out[i] = 0;
    for (round = 1; round < 4; round = round + 1) start<&ByFunction<T>::worker>();
    return true;
  }
  bool worker(unsigned id) {
    for (unsigned i = id; i < in.size(); i += 6) out[i] = out[i] * 2 + in[i] * round + id;
    return true;
  }
};
template class ByFunction<int>;
)src";

}  // namespace

TEST(supervisors_start_the_workers_of_their_tile) {
  Fixture f;
  add(f, kStarts);
  std::vector<int> values(15), symbol(15), function(15, 0);
  for (int i = 0; i < 15; ++i) {
    values[i] = 3 * i + 1;
    symbol[i] = 10 * values[i] + i % 6 + (i == 0 ? 1000 : 0);
    for (int round = 1; round < 4; ++round)
      function[i] = function[i] * 2 + values[i] * round + i % 6;
  }
  const Tensor in = f.constant<int>({15}, values);
  CHECK(run<int>(f, "BySymbol", {{"in", in}}, 15) == symbol);
  Fixture g;
  add(g, kStarts);
  CHECK(run<int>(g, "ByFunction<int>", {{"in", g.constant<int>({15}, values)}}, 15) == function);
}

TEST(headers_in_other_folders_are_read_as_for_an_ipu) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ipujax-forms-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "own_workers.hpp") << R"src(
#pragma once
#include <TileConstants.hpp>
namespace own {
__attribute__((target("worker"))) inline unsigned id() {
  return __builtin_ipu_get(CSR_W_WSR__INDEX) & CSR_W_WSR__CTXTID_M1__MASK;
}
}
)src";
  Fixture f;
  std::istringstream text(R"src(
#include <own_workers.hpp>
#include <poplar/Vertex.hpp>
class Ids : public poplar::MultiVertex {
 public:
  poplar::Output<poplar::Vector<unsigned>> out;
  bool compute(unsigned worker) {
    out[worker] = 10 + own::id();
    return true;
  }
};
)src");
  f.graph.addCodelets(text, "-I " + folder.string());
  CHECK(run<unsigned>(f, "Ids", {}, 6) == (std::vector<unsigned>{10, 11, 12, 13, 14, 15}));
  std::filesystem::remove_all(folder);
}

TEST(what_an_edge_points_to_is_its_vector) {
  Fixture f;
  add(f, R"src(
#include <poplar/Vertex.hpp>
    using namespace poplar;
    float last(const Vector<float>& values) { return values[values.size() - 1]; }
    class Pointers : public Vertex {
     public:
      Input<Vector<float>> in;
      Vector<Input<Vector<float>>> rows;
      Output<Vector<float>> out;
      bool compute() {
        Vector<float>& to = *out;
        for (unsigned i = 0; i < (*in).size(); ++i) to[i] = 2 * (*in)[i];
        to[(*out).size() - 1] = last(*in) + (*rows[1])[0];
        return true;
      }
    };)src");
  const Tensor in = f.constant<float>({2}, {4, 5});
  const Tensor out = f.graph.addVariable(FLOAT, {3});
  f.graph.setTileMapping(out, 1);
  const ComputeSet cs = f.graph.addComputeSet();
  const VertexRef v = f.graph.addVertex(cs, "Pointers", {{"in", in}, {"out", out}});
  f.graph.setFieldSize(v["rows"], 2);
  f.graph.connect(v["rows"][0], in);
  f.graph.connect(v["rows"][1], in.slice(1, 2));
  f.graph.setTileMapping(v, 1);
  f.prog.add(Execute(cs));
  CHECK(f.run(out) == (std::vector<float>{8, 10, 10}));
}

TEST(edges_have_arrows) {
  Fixture f;
  add(f, R"src(
#include <poplar/Vertex.hpp>
    class Arrows : public poplar::Vertex {
     public:
      poplar::Input<poplar::Vector<float>> in;
      poplar::Output<poplar::Vector<float>> out;
      bool compute() {
        if (in->size() + 1 != out->size()) return false;
        for (unsigned i = 0; i < in->size(); ++i) out[i] = in->data()[i] * 2;
        *(out->end() - 1) = *in->begin();
        return true;
      }
    };)src");
  const Tensor in = f.constant<float>({2}, {4, 5});
  CHECK(run<float>(f, "Arrows", {{"in", in}}, 3) == (std::vector<float>{8, 10, 4}));
}

TEST(the_largest_value_of_a_field_is_that_of_its_elements) {
  Fixture f;
  add(f, R"src(
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>
    template <class T>
    class Holds : public poplar::Vertex {
     public:
      poplar::Input<poplar::Vector<T>> in;
      poplar::Vector<short> shorts;
      unsigned char byte;
      bool flag;
      unsigned long long wide;
      bool compute() { return true; }
    };
    template class Holds<half>;
    template class Holds<float>;
    template class Holds<unsigned>;)src");
  CHECK_EQ(f.graph.getMaxVertexFieldValue("Holds<half>", "in"), 65504);
  CHECK_EQ(f.graph.getMaxVertexFieldValue("Holds<float>", "in"), 3.4028234663852886e38);
  CHECK_EQ(f.graph.getMaxVertexFieldValueAs<std::uint64_t>("Holds<unsigned>", "in"), 4294967295U);
  CHECK_EQ(f.graph.getMaxVertexFieldValueAs<std::int64_t>("Holds<half>", "shorts"), 32767);
  CHECK_EQ(f.graph.getMaxVertexFieldValue("Holds<float>", "byte"), 255);
  CHECK_EQ(f.graph.getMaxVertexFieldValue("Holds<float>", "flag"), 1);
  CHECK_THROWS(f.graph.getMaxVertexFieldValue("Holds<float>", "wide"), "32 bits or fewer");
  CHECK_THROWS(f.graph.getMaxVertexFieldValue("Holds<float>", "none"), "one of the type's fields");
  CHECK_THROWS(f.graph.getMaxVertexFieldValue("Holds<double>", "in"), "");
  CHECK_THROWS(f.graph.getMaxVertexFieldValue("Nothing", "in"), "that addCodelets added");
}

TEST(what_vertices_return_is_gathered_where_a_tensor_is_given) {
  const auto agree = [](const std::vector<int>& values) {
    Fixture f;
    for (const char* name : {"Small", "Even"})  // of two files, thus two steps
      add(f, std::string("#include <poplar/Vertex.hpp>\nclass ") + name +
                 " : public poplar::Vertex {\n public:\n  poplar::Input<int> in;\n"
                 "  bool compute() { return " +
                 (name[0] == 'S' ? "*in < 100" : "*in % 2 == 0") + "; }\n};\n");
    const Tensor in = f.constant<int>({values.size()}, values);
    const Tensor all = f.graph.addVariable(BOOL, {1}, VariableMappingMethod::LINEAR);
    const ComputeSet cs = f.graph.addComputeSet();
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const char* name : {"Small", "Even"})
        f.graph.setTileMapping(f.graph.addVertex(cs, name, {{"in", in[i]}}), 3);
    f.prog.add(Execute(cs, all));
    return f.run<int>(popops::cast(f.graph, all, INT, f.prog))[0] == 1;
  };
  CHECK(agree({2, 4, 98}));
  CHECK(!agree({2, 5, 98}));
  CHECK(!agree({102, 4, 98}));
  CHECK(!agree({101}));
  Fixture f;
  const ComputeSet none = f.graph.addComputeSet();
  CHECK_THROWS(Execute(none, f.variable("x", {1})), "one element of BOOL");
  CHECK_THROWS(Execute(none, Tensor()), "an empty Tensor");
  f.prog.add(Execute(none, f.variable("b", {1}, BOOL)));
  CHECK_THROWS(Engine(f.graph, f.prog), "needs a compute set with vertices");
}
