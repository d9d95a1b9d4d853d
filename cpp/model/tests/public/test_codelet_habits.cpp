#include <cstdlib>
#include <string>

#include "Check.hpp"
#include "Codelets.hpp"

/// Codelets as in public programs, with macros, types and numbers of all kinds.
using namespace poplar;
using namespace poplar::program;

namespace {

std::string messageOf(const std::function<void()>& function) {
  try {
    function();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

constexpr const char* kBegin = "#include <poplar/Vertex.hpp>\nusing namespace poplar;\n";

}  // namespace

TEST(macros_of_a_source_do_not_change_what_reads_it) {
  Fixture f;
  add(f, R"(
    #define quarter 0.25f
    #define codelet 3
    #define name 4
    #define entry 5
    #define count 6
    #define offset(x) (x)
    #define V 7
    #define T 8
    #define worker 9
    #define compute_on 10
    #include <poplar/Vertex.hpp>
    class Quarters : public poplar::Vertex {
     public:
      poplar::Input<poplar::Vector<float>> in;
      poplar::Output<poplar::Vector<float>> out;
      bool compute() {
        for (unsigned i = 0; i < out.size(); ++i) out[i] = in[i] * quarter + V;
        return true;
      }
    };)");
  const Tensor in = f.constant<float>({2}, {4, 8});
  CHECK(run<float>(f, "Quarters", {{"in", in}}, 2) == (std::vector<float>{8, 9}));
}

TEST(counters_of_loops_have_a_type_of_their_own) {
  for (const char* header : {"poplar/Vertex.hpp", "ipu_builtins.h"}) {
    Fixture f;
    add(f, std::string("#include <poplar/Vertex.hpp>\n#include <") + header + R"(>
      class Sum : public poplar::Vertex {
       public:
        poplar::Input<poplar::Vector<int>> in;
        poplar::Output<poplar::Vector<int>> out;
        bool compute() {
          const rptsize_t n = in.size();
          const poplar::rptsize_t same = n;
          out[0] = sizeof(n);
          for (rptsize_t i = 0; i < same; ++i) out[0] += in[i];
          return true;
        }
      };)");
    CHECK(run<int>(f, "Sum", {{"in", f.constant<int>({3}, {1, 2, 3})}}, 1) ==
          (std::vector<int>{8}));
  }
  Fixture own;
  add(own, R"(
    #include <poplar/Vertex.hpp>
    using namespace poplar;
    typedef unsigned rptsize_t;
    class Size : public Vertex {
     public:
      Output<Vector<int>> out;
      bool compute() { out[0] = sizeof(rptsize_t); return true; }
    };)");
  CHECK(run<int>(own, "Size", {}, 1) == (std::vector<int>{4}));
}

TEST(quarters_come_with_vertices) {
  for (const char* own : {"",
                          "static quarter_metadata unpackMetadata(const MetadataType* in) { "
                          "return {quarter_metadata::f143, static_cast<signed char>(1)}; }\n"}) {
    Fixture f;
    add(f, std::string(kBegin) + own + R"(
      class Halved : public Vertex {
       public:
        Output<Vector<float>> out;
        bool compute() {
          const MetadataType packed = 0x80 | 1, low = 0x3f;
          const quarter_metadata metadata = unpackMetadata(&packed);
          out[0] = toFloat(toQuarter(6.0f, metadata), metadata);
          out[1] = metadata.scale;
          out[2] = metadata.fmt == quarter_metadata::f143;
          out[3] = poplar::unpackMetadata(&low).scale;
          return true;
        }
      };)");
    CHECK(run<float>(f, "Halved", {}, 4) == (std::vector<float>{6, 1, 1, -1}));
  }
}

TEST(numbers_become_the_type_of_the_field_they_are_given_to) {
  const std::string source = std::string(kBegin) + R"(
    class Adds : public Vertex {
     public:
      Input<unsigned> n;
      Input<Vector<short>> many;
      Input<half> h;
      unsigned char plain;
      Output<Vector<float>> out;
      bool compute() {
        out[0] = n + many[0] + many[1] + plain + float(*h);
        return true;
      }
    };)";
  const auto sum = [&](auto n, auto many, auto h) {
    Fixture f;
    add(f, source);
    const Tensor out = f.variable("out", {1});
    const ComputeSet cs = f.graph.addComputeSet();
    const VertexRef v = f.graph.addVertex(cs, "Adds", {{"out", out}, {"plain", 3}});
    f.graph.connect(v["n"], n);
    f.graph.connect(v["many"], many);
    f.graph.connect(v["h"], h);
    f.graph.setTileMapping(v, 1);
    f.prog.add(Execute(cs));
    Engine engine(f.graph, f.prog);
    engine.loadAndRun(f.device);
    return f.read(engine, "out", 1)[0];
  };
  CHECK_EQ(sum(100, std::vector<int>{1, -2}, 0.5f), 102.5f);
  CHECK_EQ(sum(100LL, std::vector<unsigned char>{1, 2}, 0.5f), 106.5f);
  CHECK_EQ(sum(true, std::vector<long>{1, 2}, 0.5f), 7.5f);
  CHECK_THROWS(sum(-1, std::vector<int>{1, 2}, 0.5f), "numbers that unsigned int can hold");
  CHECK_THROWS(sum(1, std::vector<int>{1, 1 << 20}, 0.5f), "for field 'many' of a Adds");
  CHECK_THROWS(sum(1, std::vector<int>{1, 2}, 1), "numbers that half can hold");
}

TEST(an_unknown_vertex_is_told_with_the_known_ones) {
  Fixture f;
  const auto message = [&] {
    return messageOf([&] { f.graph.addVertex(f.graph.addComputeSet(), "Missing"); });
  };
  CHECK(has(message(), "none was added, and got Missing. Add its source first."));
  add(f, std::string(kBegin) + R"(
    template <class T> class Open : public Vertex {
     public:
      Output<T> out;
      bool compute() { *out = 1; return true; }
    };
    template <class T> class Fixed : public Vertex {
     public:
      Output<T> out;
      bool compute() { *out = 1; return true; }
    };
    template class Fixed<float>;
    class Plain : public Vertex {
     public:
      Output<float> out;
      bool compute() { *out = 1; return true; }
    };)");
  CHECK(has(message(), "(Fixed<float>, Open<...>, Plain); got Missing."));
}

TEST(errors_of_a_discarded_way_to_compile_do_not_hide_the_real_one) {
  // The first way has constant inputs, for which each pointer here is an error of its own.
  const std::string message = messageOf([] {
    Fixture f;
    add(f, std::string(kBegin) + R"(
      class Casts : public Vertex {
       public:
        Input<Vector<float>> a, b, c;
        Output<float> out;
        bool compute() {
          float* p = static_cast<float*>(a.data());
          float* q = static_cast<float*>(b.data());
          float* r = static_cast<float*>(c.data());
          *out = *p + *q + *r + mistyped;
          return true;
        }
      };)");
  });
  CHECK(has(message, "mistyped"));
  CHECK(!has(message, "static_cast"));
  // Hosts have no such names at all.
  const std::string for_ipu = messageOf([] {
    Fixture f;
    add(f, std::string(kBegin) + R"(
      #ifdef __IPU__
      struct Helper { static float one() { return 1; } static float two() { return 2; } };
      #endif
      class Helped : public Vertex {
       public:
        Output<float> out;
        bool compute() {
          *out = Helper::one() + mistyped;
          *out += Helper::two();
          return true;
        }
      };)");
  });
  CHECK(has(for_ipu, "mistyped"));
  CHECK(!has(for_ipu, "has not been declared"));
}

TEST(a_text_is_compiled_once_in_a_process) {
  const std::string source = std::string(kBegin) + R"(
    class Once : public Vertex {
     public:
      Output<Vector<float>> out;
      bool compute() { out[0] = 17; return true; }
    };)";
  Fixture first;
  add(first, source);
  CHECK(run<float>(first, "Once", {}, 1) == (std::vector<float>{17}));
  const char* given = std::getenv("CXX");
  const std::string before = given ? given : "";
  setenv("CXX", "/no/such/compiler", 1);
  Fixture again, other;
  add(again, source);
  CHECK(run<float>(again, "Once", {}, 1) == (std::vector<float>{17}));
  CHECK_THROWS(add(other, source + "\n// other\n"), "/no/such/compiler");
  given ? setenv("CXX", before.c_str(), 1) : unsetenv("CXX");
}
