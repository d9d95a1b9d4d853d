// User codelets, compiled with the host's compiler and run as vertices.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "Check.hpp"
#include "engine/Half.hpp"
#include "engine/codelets/CodeletParser.hpp"
#include "engine/image/Image.hpp"
#include "poplar/Program.hpp"
#include "popops/OnDevice.hpp"

using namespace poplar;
using ipujax::engine::parseCodelets;
using Floats = std::vector<float>;

namespace {

const char* const kScale = R"cpp(
#include <poplar/Vertex.hpp>
#include <cmath>
  using namespace poplar;

  class Scale : public Vertex {
   public:
    Input<Vector<float>> in;
    Output<Vector<float>> out;
    const float factor;
    unsigned skipped = 0;  // a default that stays where nothing is set
    bool compute() {
      for (unsigned i = skipped; i < in.size(); ++i) out[i] = factor * in[i];
      return true;
    }
  };

  namespace ns {
  template <typename T, bool kNegate>
  class [[poplar::constraint("elem(*in) != elem(*out)")]] Sum : public MultiVertex {
   public:
    Input<Vector<T, VectorLayout::ONE_PTR, 8>> in;
    Output<T> out;
    unsigned n;
    void compute(unsigned workerId) {
      if (workerId != 0) return;
      float sum = 0;
      for (unsigned i = 0; i < n; ++i) sum += float(in[i]);
      *out = T(kNegate ? -sum : sum);
    }
  };
  template class Sum<float, false>;
  template class Sum<half, true>;

  struct Lists : Vertex {
    Vector<Input<Vector<float>>> rows;
    InOut<VectorList<int, VectorListLayout::DELTAN>> counts;
    Vector<Output<float>> totals;
    Vector<float> weights;
    bool compute() {
      for (unsigned r = 0; r < rows.size(); ++r) {
        float sum = 0;
        for (float x : rows[r]) sum += x * weights[r];
        *totals[r] = sum;
        for (auto& c : counts[r]) c += 100;
      }
      return true;
    }
  };

  class Fails : public Vertex {
   public:
    InOut<float> x;
    bool compute() { return *x < 0; }
  };
  }  // namespace ns
)cpp";

void addScale(Graph& graph) {
  std::istringstream source(kScale);
  graph.addCodelets(source);
}

}  // namespace

TEST(codelets_are_found_in_source) {
  const auto found = parseCodelets(R"(
    namespace a { namespace b {
    struct Plain { int x; };
    class V final : public poplar::Vertex {
      static constexpr int k = 3;
      using T = int;
    public:
      V() : n{2} { }
      poplar::Input<poplar::Vector<float, poplar::VectorLayout::SPAN, 8>> in, in2;
      unsigned n = 5, m{6};
      float table[4];
      bool compute() { if (n < m) { return false; } return true; }
      const bool flag;
    };
    class W : public V { public: int extra; bool compute(); };
    template <class T, unsigned N = (1 > 0)> class X : public poplar::MultiVertex {
      public: T x; void compute(unsigned) {}
    };
    template class X<unsigned int, 3>;
    template <> class X<half> : public poplar::Vertex { public: int other; bool compute(); };
    inline namespace v1 { struct Y : poplar::Vertex { bool compute(); }; }
    } })");
  CHECK_EQ(found.classes.size(), 5u);
  CHECK(found.classes.at("a::b::V").fields ==
        (std::vector<std::string>{"in", "in2", "n", "m", "flag"}));
  CHECK_EQ(found.classes.at("a::b::W").fields.size(), 6u);
  CHECK(found.classes.at("a::b::X").is_template);
  CHECK(found.types == (std::vector<std::string>{"a::b::V", "a::b::W", "a::b::X<unsigned,3>",
                                                 "a::b::X<half>", "a::b::Y"}));
}

TEST(vertices_run_over_tiles) {
  OnDevice d;
  addScale(d.graph);
  const Tensor in = d.iota({100});
  const Tensor out = d.graph.addVariable(FLOAT, {100}, VariableMappingMethod::LINEAR);
  const ComputeSet cs = d.graph.addComputeSet("scale");
  for (unsigned tile = 0; tile < 10; ++tile) {
    const VertexRef v = d.graph.addVertex(cs, "Scale",
                                          {{"in", in.slice(tile * 10, tile * 10 + 10)},
                                           {"out", out.slice(tile * 10, tile * 10 + 10)}});
    d.graph.setInitialValue(v["factor"], 0.5f + static_cast<float>(tile));
    d.graph.setTileMapping(v, tile);
    d.graph.setPerfEstimate(v, 100 + tile, 10);
  }
  d.prog.add(program::Execute(cs));
  const auto values = d.read<float>(out);
  for (std::size_t i = 0; i < 100; ++i)
    CHECK_EQ(values[i], static_cast<float>(i) * (0.5f + static_cast<float>(i / 10)));
}

TEST(vertex_costs_are_the_sum_by_worker) {
  OnDevice d;
  addScale(d.graph);
  const Tensor in = d.graph.addVariable(FLOAT, {8}, "in");
  d.graph.setTileMapping(in, 3);
  const ComputeSet cs = d.graph.addComputeSet("scale");
  for (unsigned i = 0; i < 8; ++i) {
    const Tensor out = d.graph.addVariable(FLOAT, {8}, "out");
    d.graph.setTileMapping(out, 3);
    const VertexRef v = d.graph.addVertex(cs, "Scale", {{"in", in}, {"out", out}});
    d.graph.setInitialValue(v["factor"], 1.0f);
    d.graph.setTileMapping(v, 3);
    d.graph.setPerfEstimate(v, 50, 8);
  }
  d.prog.add(program::Execute(cs));
  const auto cost = compileGraph(d.graph, {d.prog}).image()->cost();
  // Two of six workers run two vertices of 50 cycles, each worker every sixth cycle.
  CHECK(cost.compute_cycles >= 600);
  CHECK(cost.compute_cycles < 800);
  CHECK_EQ(cost.flops, 64.0);
  CHECK_EQ(cost.exchange_bytes, 0.0);
  CHECK(cost.vertex_state_bytes >= 8 * (8 + 8 + 4 + 4));
}

TEST(template_codelets_and_multi_vertices) {
  for (const bool halves : {false, true}) {
    OnDevice d;
    addScale(d.graph);
    const Type type = halves ? HALF : FLOAT;
    const Tensor in = halves ? d.input<std::uint16_t>(HALF, {2}, {0x3c00, 0x4000}) : d.iota({10});
    const Tensor out = d.graph.addVariable(type, {}, "out");
    d.graph.setTileMapping(out, 0);
    const ComputeSet cs = d.graph.addComputeSet();
    const VertexRef v = d.graph.addVertex(
        cs, halves ? "ns::Sum<half,true>" : "ns::Sum<float, false>", {{"in", in}, {"out", out}});
    d.graph.setInitialValue(v["n"], in.numElements());
    d.graph.setTileMapping(v, 1);
    d.prog.add(program::Execute(cs));
    if (halves) {
      CHECK_EQ(ipujax::engine::halfToFloat(d.read<std::uint16_t>(out)[0]), -3.0f);
    } else {
      CHECK_EQ(d.read<float>(out)[0], 45.0f);
    }
  }
}

TEST(template_instantiated_by_name_only) {
  OnDevice d;
  addScale(d.graph);
  const Tensor in = d.input<int>(INT, {3}, {1, 2, 3});
  const Tensor out = d.graph.addVariable(INT, {}, "out");
  d.graph.setTileMapping(out, 0);
  const ComputeSet cs = d.graph.addComputeSet();
  const VertexRef v = d.graph.addVertex(cs, "ns::Sum<int,true>", {{"in", in}, {"out", out}});
  d.graph.setInitialValue(v["n"], 3);
  d.graph.setTileMapping(v, 0);
  d.prog.add(program::Execute(cs));
  CHECK_EQ(d.read<int>(out)[0], -6);
}

TEST(lists_state_and_strided_edges) {
  OnDevice d;
  addScale(d.graph);
  const Tensor in = d.iota({4, 2});
  const Tensor counts = d.input<int>(INT, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor totals = d.graph.addVariable(FLOAT, {2}, VariableMappingMethod::LINEAR);
  const ComputeSet cs = d.graph.addComputeSet();
  const VertexRef v = d.graph.addVertex(cs, "ns::Lists");
  d.graph.connect(v["rows"], in.transpose());  // columns, which are not contiguous
  d.graph.connect(v["counts"], {counts.slice({0, 1}, {2, 3})[0], counts[1].reverse(0)});
  d.graph.connect(v["totals"][0], totals[0]);
  d.graph.connect(v["totals"][1], totals[1]);
  d.graph.setFieldSize(v["weights"], 2);
  d.graph.setInitialValue(v["weights"][0], 1.0f);
  d.graph.setInitialValue(v["weights"][1], 10.0f);
  d.graph.setTileMapping(v, 5);
  d.prog.add(program::Execute(cs));
  d.graph.createHostRead("counts", counts);
  const auto values = d.read<float>(totals);
  CHECK(values == (Floats{12, 160}));
}

TEST(outputs_through_copies_come_back) {
  OnDevice d;
  addScale(d.graph);
  const Tensor in = d.iota({3});
  const Tensor out = d.graph.addVariable(FLOAT, {3, 2}, VariableMappingMethod::LINEAR);
  const ComputeSet cs = d.graph.addComputeSet();
  const VertexRef v = d.graph.addVertex(cs, "Scale", {{"in", in}, {"out", out.transpose()[1]}});
  d.graph.setInitialValue(v["factor"], 2.0f);
  d.graph.setTileMapping(v, 0);
  d.prog.add(program::Execute(cs));
  CHECK(d.read<float>(out.transpose()[1]) == (Floats{0, 2, 4}));
}

TEST(executables_with_codelets_survive_serialisation) {
  std::stringstream bytes;
  {
    OnDevice d;
    addScale(d.graph);
    const Tensor in = d.graph.addVariable(FLOAT, {4}, VariableMappingMethod::LINEAR, "in");
    const Tensor out = d.graph.addVariable(FLOAT, {4}, VariableMappingMethod::LINEAR, "out");
    d.graph.createHostWrite("in", in);
    d.graph.createHostRead("out", out);
    const ComputeSet cs = d.graph.addComputeSet();
    const VertexRef v = d.graph.addVertex(cs, "Scale", {{"in", in}, {"out", out}});
    d.graph.setInitialValue(v["factor"], 3.0f);
    d.graph.setTileMapping(v, 0);
    d.prog.add(program::Execute(cs));
    compileGraph(d.graph, {d.prog}).serialize(bytes);
  }
  Engine engine(Executable::deserialize(bytes));
  engine.load(Device(IPUModel().createDevice()));
  Floats values{1, 2, 3, 4};
  engine.writeTensor("in", values.data(), values.data() + 4);
  engine.run(0);
  engine.readTensor("out", values.data(), values.data() + 4);
  CHECK(values == (Floats{3, 6, 9, 12}));
}

TEST(codelet_files_bring_their_local_includes) {
  const auto folder = std::filesystem::temp_directory_path() / "ipujax_codelet_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "factor.hpp") << "#pragma once\nconstexpr float kFactor = 7;\n";
  std::ofstream(folder / "seven.cpp")
      << "#include <poplar/Vertex.hpp>\n#include \"factor.hpp\"\n"
         "struct Seven : poplar::Vertex { poplar::Output<float> out;"
         " bool compute() { *out = kFactor * BY; return true; } };\n";
  OnDevice d;
  d.graph.addCodelets((folder / "seven.cpp").string(), CodeletFileType::Auto, "-DBY=2");
  std::filesystem::remove_all(folder);
  const Tensor out = d.graph.addVariable(FLOAT, {}, VariableMappingMethod::LINEAR);
  const ComputeSet cs = d.graph.addComputeSet();
  const VertexRef v = d.graph.addVertex(cs, "Seven", {{"out", out}});
  d.graph.setTileMapping(v, 0);
  d.prog.add(program::Execute(cs));
  CHECK_EQ(d.read<float>(out)[0], 14.0f);
}

TEST(wrong_codelets_and_connections_are_told) {
  OnDevice d;
  std::istringstream broken(
      "#include <poplar/Vertex.hpp>\nclass A : public poplar::Vertex {\n"
      "public: float x; bool compute() { return y; } };\n");
  CHECK_THROWS(d.graph.addCodelets(broken), "codelets.cpp:3");
  CHECK_THROWS(d.graph.addCodelets("/nowhere/at_all.cpp"), "at_all.cpp");
  addScale(d.graph);
  const Tensor in = d.iota({4});
  const ComputeSet cs = d.graph.addComputeSet();
  CHECK_THROWS(d.graph.addVertex(cs, "Skale"), "Scale");
  const VertexRef v = d.graph.addVertex(cs, "Scale");
  CHECK_THROWS(d.graph.connect(v["input"], in), "in, out, factor, skipped");
  d.graph.connect(v["in"], in);
  d.graph.setTileMapping(v, 0);
  d.prog.add(program::Execute(cs));
  CHECK_THROWS(compileGraph(d.graph, {d.prog}), "'out'");
  d.graph.connect(v["out"], d.input<int>(INT, {4}, {1, 2, 3, 4}));
  CHECK_THROWS(compileGraph(d.graph, {d.prog}), "float");
}

TEST(unmapped_vertices_and_false_are_errors) {
  for (const bool mapped : {false, true}) {
    OnDevice d;
    addScale(d.graph);
    const Tensor x = d.input<float>(FLOAT, {}, {1});
    const ComputeSet cs = d.graph.addComputeSet("check");
    const VertexRef v = d.graph.addVertex(cs, "ns::Fails", {{"x", x}});
    if (mapped) d.graph.setTileMapping(v, 0);
    d.prog.add(program::Execute(cs));
    CHECK_THROWS(d.read<float>(x), mapped ? "returned false" : "setTileMapping");
  }
}

TEST(headers_of_the_ipu_are_there_for_the_host) {
  OnDevice d;
  std::istringstream source(R"(
    #include <ipu_intrinsics>
    #include <ipudef.h>
    #include <poplar/HalfFloat.hpp>
    #include <poplar/Vertex.hpp>
    #include <print.h>
    using namespace poplar;

    float total(const float* x, unsigned n) {
      float sum = 0;
      for (unsigned i = 0; i < n; ++i) sum += x[i];
      return sum;
    }

    class Pairs : public Vertex {
     public:
      Pairs();
      Input<Vector<float, VectorLayout::ONE_PTR, 8>> in;
      Output<Vector<float, VectorLayout::SPAN, 8>> out;
      static const int kept = 3;

      bool compute() {
        const float2* from = reinterpret_cast<const float2*>(in.data());
        float2* to = reinterpret_cast<float2*>(out.data());
        for (unsigned i = 0; i < 2; ++i) {
          float2 v = ipu::load_postinc(&from, 1);
          v = ipu::fma(v, float2{2, 3}, ipu::max(v, float2{1.5f, 1.5f}));
          ipu::store_postinc(&to, v, 1);
        }
        const half2 h = ipu::clamp(half2{8.0f, -8.0f}, half2{-2.0f, 4.0f});
        out[4] = total(in, 4) + float(h[0]) + float(h[1]) + __builtin_ipu_tanh(0.0f);
        out[5] = ipu::sum(ipu::exp(float2{0, 0}) * float2{5, 6});
        return true;
      }
    };
  )");
  d.graph.addCodelets(source);
  const Tensor in = d.iota({4});
  const Tensor out = d.graph.addVariable(FLOAT, {6}, "out");
  d.graph.setTileMapping(out, 1);
  const ComputeSet cs = d.graph.addComputeSet();
  const VertexRef v = d.graph.addVertex(cs, "Pairs", {{"in", in}, {"out", out}});
  d.graph.setTileMapping(v, 1);
  d.prog.add(program::Execute(cs));
  CHECK(d.read<float>(out) == (std::vector<float>{1.5f, 4.5f, 6, 12, 8, 11}));
}

TEST(what_codelets_for_the_ipu_name_is_there) {
  OnDevice d;
  std::istringstream source(R"(
    #include <limits>
    #include <poplar/AvailableVTypes.h>
    #include <poplar/HalfFloat.hpp>
    #include <poplar/StackSizeDefs.hpp>
    #include <poplar/TileConstants.hpp>
    #include <poplar/Vertex.hpp>
    using namespace poplar;
    DEF_STACK_USAGE(32, "Least")

    template <class T>
    class Least : public SupervisorVertexIf<true> {
     public:
      Least();
      Input<Vector<T, VectorLayout::COMPACT_PTR, 8>> in;
      Output<float> out;
      static inline constexpr half4 kOnes = {1.0f, 1.0f, 1.0f, 1.0f};

      bool compute() {
        const half4* from = (const half4*)(&(in[0]));
        const half4 sum = from[0] * half(2.0f) + kOnes;
        *out = float(sum[3]) + float(std::numeric_limits<T>::max());
        return true;
      }
    };
    template class Least<half>;
  )");
  d.graph.addCodelets(source);
  const Tensor in = d.input<std::uint16_t>(HALF, {4}, {0, 0, 0, 0x4200});
  const Tensor out = d.graph.addVariable(FLOAT, {}, "out");
  d.graph.setTileMapping(out, 0);
  const ComputeSet cs = d.graph.addComputeSet();
  const VertexRef v = d.graph.addVertex(cs, "Least<half>", {{"in", in}, {"out", out}});
  d.graph.setTileMapping(v, 0);
  d.prog.add(program::Execute(cs));
  CHECK_EQ(d.read<float>(out)[0], 65511.0f);
}
