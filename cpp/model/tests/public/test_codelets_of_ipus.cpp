#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poputil/VertexTemplates.hpp>
#include <sstream>

#include "Check.hpp"
#include "OneVertex.hpp"

/// Codelets that rely on an IPU's types or on its preprocessor branches.
using namespace poplar;

namespace {

const char* const kSource = R"src(
#include <cstddef>
#include <cstdint>
#include <poplar/Vertex.hpp>
    using namespace poplar;
    template <int kFactor>
    class Widths : public Vertex {
     public:
      Input<size_t> most;
      Vector<Input<Vector<std::size_t, VectorLayout::ONE_PTR>>> lists;
      Input<Vector<unsigned long>> counts;
      Input<Vector<uint64_t>> wide;
      InOut<Vector<long>> out;
      const size_t kept;
      bool compute() {
        size_t sum = most + kept;
        for (size_t i = 0; i < lists.size(); ++i) sum += kFactor * lists[i][1];
        for (auto c : counts) sum += c;
        out[0] = sum;
        out[1] = -long(wide[0] >> 32) - out[1];
        return true;
      }
    };
    template class Widths<3>;
)src";

/// A vertex of Widths on tile 0.
struct OneOfWidths : Fixture {
  ComputeSet cs = graph.addComputeSet("widths");
  VertexRef v;

  OneOfWidths() {
    std::istringstream source(kSource);
    graph.addCodelets(source);
    v = graph.addVertex(cs, poputil::templateVertex("Widths", 3));
    graph.setTileMapping(v, 0);
    prog.add(program::Execute(cs));
  }
  template <class T>
  Tensor field(const char* name, std::vector<std::size_t> shape, const std::vector<T>& values,
               Type type) {
    const Tensor t = constant<T>(std::move(shape), values, type);
    graph.setTileMapping(t, 0);
    graph.connect(v[name], t);
    return t;
  }
};

}  // namespace

TEST(fields_of_size_t_and_long_have_32_bits) {
  OneOfWidths f;
  f.field<unsigned>("most", {}, {5}, UNSIGNED_INT);
  f.field<unsigned>("lists", {2, 2}, {9, 10, 9, 20}, UNSIGNED_INT);
  f.field<unsigned>("counts", {3}, {100, 200, 300}, UNSIGNED_LONG);
  f.field<unsigned long long>("wide", {1}, {(7ull << 32) + 1}, UNSIGNED_LONGLONG);
  f.graph.setInitialValue(f.v["kept"], 1000);
  const auto got = f.run<int>(f.field<int>("out", {2}, {0, -4}, LONG));
  CHECK_EQ(got[0], 5 + 1000 + 3 * 30 + 600);
  CHECK_EQ(got[1], -7 + 4);
}

TEST(fields_of_size_t_refuse_elements_of_64_bits) {
  OneOfWidths f;
  f.field<unsigned long long>("most", {}, {5}, UNSIGNED_LONGLONG);
  f.field<unsigned>("lists", {2, 2}, {9, 10, 9, 20}, UNSIGNED_INT);
  f.field<unsigned>("counts", {1}, {1}, UNSIGNED_INT);
  f.field<unsigned long long>("wide", {1}, {1}, UNSIGNED_LONGLONG);
  const Tensor out = f.field<int>("out", {2}, {0, 0}, INT);
  CHECK_THROWS(f.run<int>(out), "elements of unsigned int for field 'most'");
}

TEST(types_of_64_bits_are_arguments_of_templates) {
  const auto doubled = [](const std::string& type, Type elements) {
    Fixture f;
    std::istringstream text(R"src(
#include <poplar/Vertex.hpp>
    template <class T>
    class Doubled : public poplar::Vertex {
     public:
      poplar::InOut<T> out;
      bool compute() {
        *out = 2 * *out;
        return true;
      }
    };
    template class Doubled<long long int>;
    template class Doubled<unsigned long long>;)src");
    f.graph.addCodelets(text);
    const ComputeSet cs = f.graph.addComputeSet("doubled");
    const Tensor out = f.constant<long long>({1}, {(1LL << 40) + 3}, elements);
    const VertexRef v = f.graph.addVertex(cs, type, {{"out", out[0]}});
    f.graph.setTileMapping(out, 0);
    f.graph.setTileMapping(v, 0);
    f.prog.add(program::Execute(cs));
    return f.run<long long>(out)[0];
  };
  for (const Type type : {LONGLONG, UNSIGNED_LONGLONG})
    CHECK_EQ(doubled(poputil::templateVertex("Doubled", type), type), (1LL << 41) + 6);
  CHECK_EQ(doubled("Doubled<long long>", LONGLONG), (1LL << 41) + 6);
}

TEST(sources_that_need_their_branch_for_ipus_are_compiled_as_for_one) {
  const std::string clamps = R"src(
#include <poplar/Vertex.hpp>
#ifdef __IPU__
#include <ipu_vector_math>
    inline float clamped(float x, float low, float high) {
      return ipu::fmax(low, ipu::fmin(x, high));
    }
#endif
    class Clamps : public poplar::Vertex {
     public:
      poplar::InOut<poplar::Vector<float>> out;
      bool compute() {
        for (float& x : out) x = clamped(x, -1.0f, 2.0f);
        return true;
      }
    };)src";
  const auto clamp = [](const std::string& source) {
    Fixture f;
    std::istringstream text(source);
    f.graph.addCodelets(text);
    const ComputeSet cs = f.graph.addComputeSet("clamp");
    const VertexRef v = f.graph.addVertex(cs, "Clamps");
    const Tensor out = f.constant<float>({3}, {-5, 1, 5});
    f.graph.setTileMapping(out, 0);
    f.graph.connect(v["out"], out);
    f.graph.setTileMapping(v, 0);
    f.prog.add(program::Execute(cs));
    return f.run(out);
  };
  CHECK(clamp(clamps) == (std::vector<float>{-1, 1, 2}));
  // Both ways fail; the error shown is the IPU's, which has fewer: a host lacks clamped() too.
  std::string wrong = clamps;
  wrong.replace(wrong.find("2.0f"), 4, "none");
  CHECK_THROWS(clamp(wrong), "none");
}

TEST(functions_take_fields_and_plain_numbers_beside_numbers) {
  OneVertex f("Mixed", R"(
#include <ipu_builtins.h>
#include <ipu_vector_math>
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>
struct Mixed : poplar::Vertex {
  poplar::Input<float> a;
  poplar::Input<half> h;
  poplar::InOut<poplar::Vector<float>> x;
  bool compute() {
    x[0] = ipu::sqrt(a);
    x[1] = ipu::fmax(a, 9);
    x[2] = ipu::fmin(0.5, a);
    x[3] = __builtin_ipu_exp2(a);
    x[4] = __builtin_ipu_max(3, a);
    x[5] = float(ipu::fmax(h, 1)) + float(ipu::sqrt(h));
    x[6] = ipu::fma(a, x[6], 1);
    x[7] = ipu::fmax(a, x[7]) + ipu::fmax(float2{1, 2}, float2{3, 0})[0];
    return true;
  }
};
)");
  f.graph.connect(f.v["a"], f.onTile<float>({}, {4}));
  f.graph.connect(f.v["h"], f.onTile<float>({}, {0.25F}, HALF));
  const auto x = f.onTile<float>({8}, {0, 0, 0, 0, 0, 0, 5, 6});
  f.graph.connect(f.v["x"], x);
  CHECK(f.result<float>(x) == (std::vector<float>{2, 9, 0.5F, 16, 4, 1.5F, 21, 9}));
}
