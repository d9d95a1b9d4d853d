// Builtins of the IPU's compiler and functions of its headers, against values computed by hand or
// with the host's own functions.
#include <bit>
#include <sstream>

#include "Check.hpp"
#include "engine/Half.hpp"
#include "poplar/Program.hpp"
#include "popops/OnDevice.hpp"

using namespace poplar;
using ipujax::engine::halfToFloat;

namespace {

/// Runs statements that write words to `out`.
std::vector<unsigned> run(const std::string& statements, std::size_t n, unsigned tile = 1,
                          const std::string& base = "Vertex", int times = 1) {
  OnDevice d;
  const std::string head = R"src(
    #include <ipu_intrinsics>
    #include <colossus/tilearch.h>
    #include <arch/gc_tile_defines.h>
    #include <poplar/Vertex.hpp>
    using namespace poplar;
    template <class R, class T> R as(T x) { return *reinterpret_cast<R*>(&x); }
    class Runs : public BASE {
     public:
      Output<Vector<unsigned>> out;
      bool compute(ARGUMENTS) {
  )src";
  std::istringstream source(head + statements + "return true; } };");
  const std::string arguments = base == "Vertex" ? "" : "'unsigned worker'";
  d.graph.addCodelets(source, "-DBASE=" + base + " -DARGUMENTS=" + arguments);
  const Tensor out = d.graph.addVariable(UNSIGNED_INT, {n}, "out");
  d.graph.setTileMapping(out, tile);
  const ComputeSet cs = d.graph.addComputeSet();
  const VertexRef v = d.graph.addVertex(cs, "Runs", {{"out", out}});
  d.graph.setTileMapping(v, tile);
  for (int i = 0; i < times; ++i) d.prog.add(program::Execute(cs));
  return d.read<unsigned>(out);
}

using Words = std::vector<unsigned>;
unsigned bitsOf(float x) { return std::bit_cast<unsigned>(x); }

}  // namespace

TEST(bytes_and_halves_of_words_move) {
  const Words got = run(R"cpp(
                          const unsigned x = 0x33221100u, y = 0x77665544u;
                          out[0] = __builtin_ipu_shuf8x8lo(x, y);
                          out[1] = __builtin_ipu_shuf8x8hi(x, y);
                          out[2] = __builtin_ipu_sort8x8lo(x, y);
                          out[3] = __builtin_ipu_sort8x8hi(x, y);
                          out[4] = __builtin_ipu_sort8(x);
                          out[5] = __builtin_ipu_swap8(x);
                          out[6] = __builtin_ipu_roll8l(x, y);
                          out[7] = __builtin_ipu_roll8r(x, y);
                          out[8] = __builtin_ipu_roll16(x, y);
                          out[9] = __builtin_ipu_sort4x16lo(x, y);
                          out[10] = __builtin_ipu_sort4x16hi(x, y);
                          out[11] = __builtin_ipu_bitrev8(0x01030780u);
                          out[12] = __builtin_ipu_cms(-1) + 100 * __builtin_ipu_cms(1);
                          out[13] = as<unsigned>(__builtin_ipu_sort4x32hi(float2{1, 2}, float2{3, 4})[1]);
                          out[14] = as<unsigned>(__builtin_ipu_roll32(float2{1, 2}, float2{3, 4})[1]);
                        )cpp",
                        15);
  CHECK(got == (Words{0x55114400u, 0x77336622u, 0x66442200u, 0x77553311u, 0x33112200u, 0x22330011u,
                      0x22110077u, 0x44332211u, 0x55443322u, 0x55441100u, 0x77663322u, 0x80c0e001u,
                      31 + 100 * 30, bitsOf(4), bitsOf(3)}));
}

TEST(comparisons_give_masks_and_bits_combine) {
  const Words got = run(R"cpp(
                          out[0] = as<unsigned>(__builtin_ipu_cmplt(1.0f, 2.0f));
                          out[1] = as<unsigned>(__builtin_ipu_f32cmpge(1.0f, 2.0f));
                          out[2] = as<unsigned>(__builtin_ipu_f16v2cmpne(half2{1.0f, 2.0f}, half2{1.0f, 3.0f}));
                          out[3] = as<unsigned>(__builtin_ipu_andc(as<float>(0xffff00ffu), as<float>(0x0f0f0f0fu)));
                          out[4] = __builtin_ipu_and(0xff0, 0x3c) + __builtin_ipu_or(0x100u, 1);
                          out[5] = as<unsigned>(__builtin_ipu_not(as<float>(0xffff0000u)));
                          out[6] = as<unsigned>(ipu::andc(as<half2>(0x12345678u), as<half2>(0x00ff00ffu)));
                          out[7] = __builtin_ipu_class(0.0f) == TFPU_CLASS_PZERO;
                          out[8] = __builtin_ipu_class(half2{-1.0f, half(0x1p-20f)})[1] == TFPU_CLASS_PDENORM;
                          out[9] = __builtin_ipu_isnan(half2{1.0f, half(0.0f) / half(0.0f)})[1];
                        )cpp",
                        10);
  CHECK(got == (Words{0xffffffffu, 0, 0xffff0000u, 0xf0f000f0u, 0x30 + 0x101, 0x0000ffffu,
                      0x12005600u, 1, 1, 1}));
}

TEST(half_functions_round_once) {
  const Words got = run(R"cpp(
                          out[0] = as<unsigned>(__builtin_ipu_exp(half2{1.0f, -2.0f}));
                          out[1] = as<unsigned>(__builtin_ipu_f16v2tanh(half2{0.5f, 3.0f}));
                          out[2] = as<unsigned>(__builtin_ipu_absadd(half2{-1000.0f, 1.0f}, half2{-0.3f, 2.0f}));
                          const half4 clamped = __builtin_ipu_clamp(half4{8.0f, -8.0f, 1.0f, 0.0f}, half2{-2.0f, 4.0f});
                          out[3] = clamped[0] == 4 && clamped[1] == -2 && clamped[2] == 1 && clamped[3] == 0;
                          out[4] = as<unsigned>(__builtin_ipu_sum(half2{2048.0f, 1.0f}));
                          out[5] = as<unsigned>(float(__builtin_ipu_maxc(half4{1.0f, 2.0f, 7.0f, 3.0f})[1]));
                        )cpp",
                        6, 1);
  const auto low = [&](std::size_t i) { return halfToFloat(got[i] & 0xffff); };
  const auto high = [&](std::size_t i) { return halfToFloat(got[i] >> 16); };
  const auto rounded = [](float x) { return halfToFloat(ipujax::engine::floatToHalf(x)); };
  CHECK_EQ(low(0), rounded(std::exp(1.0f)));
  CHECK_EQ(high(0), rounded(std::exp(-2.0f)));
  CHECK_EQ(low(1), rounded(std::tanh(0.5f)));
  CHECK_EQ(high(1), rounded(std::tanh(3.0f)));
  CHECK_EQ(low(2), 1000.5f);  // 1000.3, in steps of 0.5
  CHECK_EQ(got[3], 1u);
  CHECK_EQ(got[4], bitsOf(2049));
  CHECK_EQ(got[5], bitsOf(7));
}

TEST(accumulators_of_a_worker) {
  const Words got =
      run(R"cpp(
            __builtin_ipu_cmac(half4{1.0f, 2.0f, 3.0f, 4.0f}, half4{5.0f, 6.0f, 7.0f, 8.0f});
            __builtin_ipu_cmac(half4{1.0f, 0.0f, 0.0f, 1.0f}, half4{1.0f, 0.0f, 0.0f, 1.0f});
            float2 sums = __builtin_ipu_gina(float2{0, 0}, 0);
            out[0] = as<unsigned>(sums[0]);
            out[1] = as<unsigned>(sums[1]);
            __builtin_ipu_put_tas(3.0f);
            __builtin_ipu_f32v2axpy(float2{1, 2}, float2{10, 20});
            out[2] = as<unsigned>(__builtin_ipu_f32v2axpy(float2{0, 0}, float2{0, 0})[1]);
            __builtin_ipu_f32v2aop(float2{1, 2}, float2{3, 4}, 0);
            __builtin_ipu_f32v2gina(float2{0, 0}, 0);
            out[3] = as<unsigned>(__builtin_ipu_f32v2gina(float2{0, 0}, 0)[1]);
            __builtin_ipu_f32v2aop(float2{1, 2}, float2{3, 4}, 0);
            __builtin_ipu_uput(ZAACC_BITMASK, CSR_W_FP_CLR__INDEX& CSR_UPPER_MASK);
            out[4] = as<unsigned>(__builtin_ipu_gina(float2{0, 0}, 0)[0]);
          )cpp",
          5);
  CHECK(got == (Words{bitsOf(18), bitsOf(54), bitsOf(62), bitsOf(8), bitsOf(0)}));
}

TEST(registers_say_where_a_vertex_runs) {
  const Words got = run(R"cpp(
                          out[worker] =
                              10 * __builtin_ipu_get_tile_id() + __builtin_ipu_get_worker_id();
                          if (__builtin_ipu_get(CSR_W_WSR__INDEX) != worker) return false;
                          if (__builtin_ipu_get_vertex_base() != this) return false;
                          __builtin_ipu_put(worker + 5, 210);
                          if (__builtin_ipu_get(210) != worker + 5) return false;
                          const unsigned begin = __builtin_ipu_get_scount_l();
                          if (__builtin_ipu_get_scount_l() - begin > 1000000000u) return false;
                        )cpp",
                        6, 7, "MultiVertex");
  CHECK(got == (Words{70, 71, 72, 73, 74, 75}));
}

TEST(random_numbers_are_those_of_a_distribution_and_repeat) {
  const std::string draw = R"cpp(
    float mean = 0, square = 0, uniform = 0;
    for (int i = 0; i < 4000; ++i) {
      const float2 x = __builtin_ipu_f32v2grand();
      mean += x[0] + x[1];
      square += x[0] * x[0] + x[1] * x[1];
      uniform += __builtin_ipu_urand_f32();
    }
    out[0] = as<unsigned>(mean / 8000);
    out[1] = as<unsigned>(square / 8000);
    out[2] = as<unsigned>(uniform / 4000);
    out[3] = __builtin_ipu_urand32();
    int kept = 0;
    for (int i = 0; i < 4000; ++i) kept += __builtin_ipu_rmask(float2{1, 1}, 0.25f)[0] != 0;
    out[4] = kept;
  )cpp";
  const Words got = run(draw, 5);
  CHECK_NEAR(std::bit_cast<float>(got[0]), 0, 0.05);
  CHECK_NEAR(std::bit_cast<float>(got[1]), 1, 0.06);
  CHECK_NEAR(std::bit_cast<float>(got[2]), 0, 0.02);
  CHECK_NEAR(got[4], 1000, 110);
  CHECK(run(draw, 5) == got);  // a program draws the same each time it is loaded
  CHECK(run(draw, 5, 1, "Vertex", 2)[3] != got[3]);
}

TEST(vector_functions_by_element) {
  const Words got = run(R"cpp(
                          const float2 x = {0.5f, 2.0f};
                          out[0] = as<unsigned>(ipu::log(x)[1]);
                          out[1] = as<unsigned>(ipu::copysign(x, float2{-1, 1})[0]);
                          out[2] = as<unsigned>(ipu::sigmoid(x)[0]);
                          out[3] = as<unsigned>(ipu::erf(x)[0]);
                          out[4] = as<unsigned>(ipu::absmax(x, float2{-4, 1})[0]);
                          const float* from = reinterpret_cast<const float*>(&x);
                          ipu::load_postinc(&from, 1);
                          out[5] = as<unsigned>(ipu::load_postinc(&from, 1));
                          const half h = 3.25_h;
                          out[6] = as<unsigned>(float(h));
                        )cpp",
                        7);
  const auto near = [&](std::size_t i, double expected) {
    CHECK_NEAR(std::bit_cast<float>(got[i]), expected, 1e-6);
  };
  near(0, std::log(2.0));
  near(1, -0.5);
  near(2, 1 / (1 + std::exp(-0.5)));
  near(3, std::erf(0.5));
  near(4, 4);
  near(5, 2);
  near(6, 3.25);
}
