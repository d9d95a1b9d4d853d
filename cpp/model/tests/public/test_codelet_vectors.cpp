#include "Check.hpp"
#include "Codelets.hpp"

/// Codelets for the compiler of IPUs: Clang's vectors, and code for IPUs only.
using namespace poplar;
using namespace poplar::program;

TEST(vectors_by_clangs_attribute_have_named_elements_and_arithmetic) {
  Fixture f;
  add(f, R"src(
#include <poplar/Vertex.hpp>
    using namespace poplar;
    typedef int whole4 __attribute__((ext_vector_type(4)));
    using byte2 = unsigned char __attribute__((__ext_vector_type__(2)));
    class Named : public Vertex {
     public:
      Input<Vector<float>> in;
      Output<Vector<float>> out;
      template <class T>
      using Pair = T __attribute__((ext_vector_type(1 + 1)));
      bool compute() {
        typedef float float2 __attribute__((ext_vector_type(2)));
        const float2* pairs = (const float2*)&in[0];
        float2 sum = 2 * pairs[0] + pairs[1] * 0.5f;
        sum.x += pairs[1].y;
        out[0] = sum.x;
        out[1] = sum[1];
        whole4 w = {1, 2, 3, 4};
        w <<= 1;
        out[2] = w.x + w.w + (w > 4).z;
        const byte2 bytes = {250, 3};
        out[3] = (bytes + bytes).x;
        const Pair<float> same(7);
        out[4] = same.lo + same.hi + sizeof(float2);
        return true;
      }
    };)src");
  const Tensor in = f.constant<float>({4}, {1, 2, 3, 4});
  CHECK(run<float>(f, "Named", {{"in", in}}, 5) ==
        (std::vector<float>{2 + 1.5F + 4, 6, 9, 244, 22}));
}

TEST(clangs_vectors_pass_to_intrinsics) {
  Fixture f;
  add(f, R"src(
#include <ipu_vector_math>
#include <poplar/Vertex.hpp>
    typedef float pair __attribute__((ext_vector_type(2)));
    class Passed : public poplar::Vertex {
     public:
      poplar::Input<poplar::Vector<float>> in;
      poplar::Output<poplar::Vector<float>> out;
      bool compute() {
        const pair a = {in[0], in[1]};
        const float2 most = a * 3;
        const pair least = ipu::fmin(most, float2{in[2], in[3]});
        out[0] = least.x;
        out[1] = least.y;
        return true;
      }
    };)src");
  const Tensor in = f.constant<float>({4}, {1, 2, 4, 5});
  CHECK(run<float>(f, "Passed", {{"in", in}}, 2) == (std::vector<float>{3, 5}));
}

TEST(vertices_that_a_source_has_for_ipus_alone_are_found) {
  Fixture f;
  add(f, R"src(
#include <poplar/Vertex.hpp>
#ifdef __IPU__
#include <ipu_vector_math>
#endif
    int where() {
#ifdef __IPU__
      return 1;
#else
      return 2;
#endif
    }
    class Anywhere : public poplar::Vertex {
     public:
      poplar::Output<poplar::Vector<int>> out;
      bool compute() {
        out[0] = where();
        return true;
      }
    };
#ifdef __IPU__
    class OnIpus : public poplar::Vertex {
     public:
      poplar::Output<poplar::Vector<int>> out;
      bool compute() {
        out[0] = 10 * where() + int(ipu::fmax(float2{3, 4}, float2{1, 2})[1]);
        return true;
      }
    };
#endif
  )src");
  const Tensor out = f.graph.addVariable(INT, {3, 1});
  const ComputeSet cs = f.graph.addComputeSet();
  unsigned tile = 0;
  for (const char* const type : {"Anywhere", "OnIpus", "Anywhere"}) {
    const VertexRef v = f.graph.addVertex(cs, type, {{"out", out[tile]}});
    f.graph.setTileMapping(v, tile);
    f.graph.setTileMapping(out[tile], tile);
    ++tile;
  }
  CHECK_THROWS(f.graph.addVertex(cs, "Nowhere"), "got Nowhere");
  f.prog.add(Execute(cs));
  CHECK(f.run<int>(out) == (std::vector<int>{2, 14, 2}));
}
