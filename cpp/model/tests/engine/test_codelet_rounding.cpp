// Stochastic rounding of halves inside codelets.
#include <cmath>
#include <sstream>

#include "Check.hpp"
#include "engine/Half.hpp"
#include "poplar/CSRFunctions.hpp"
#include "poplar/Program.hpp"
#include "popops/OnDevice.hpp"

using namespace poplar;
using ipujax::engine::floatToHalf;
using ipujax::engine::halfToFloat;

namespace {

using Halves = std::vector<std::uint16_t>;

/// y + x by element, x a float and y a half, on several tiles.
Halves sums(const std::vector<float>& x, float y, const FloatingPointBehaviour* behaviour,
            int runs = 1) {
  OnDevice d;
  std::istringstream source(R"src(
    #include <poplar/Vertex.hpp>
    using namespace poplar;
    class Adds : public Vertex {
     public:
      Input<Vector<float>> x;
      Input<half> y;
      Output<Vector<half>> out;
      bool compute() {
        for (unsigned i = 0; i < x.size(); ++i) out[i] = half(float(*y) + x[i]);
        return true;
      }
    };)src");
  d.graph.addCodelets(source);
  if (behaviour) setFloatingPointBehaviour(d.graph, d.prog, *behaviour);
  const Tensor in = d.input<float>(FLOAT, {x.size()}, x);
  const Tensor constant = d.input<std::uint16_t>(HALF, {}, {floatToHalf(y)});
  const Tensor out = d.graph.addVariable(HALF, {x.size()}, VariableMappingMethod::LINEAR, "sums");
  const ComputeSet cs = d.graph.addComputeSet();
  constexpr std::size_t kTiles = 4;
  for (std::size_t tile = 0; tile < kTiles; ++tile) {
    const std::size_t begin = x.size() * tile / kTiles, end = x.size() * (tile + 1) / kTiles;
    const VertexRef v = d.graph.addVertex(
        cs, "Adds", {{"x", in.slice(begin, end)}, {"y", constant}, {"out", out.slice(begin, end)}});
    d.graph.setTileMapping(v, static_cast<unsigned>(tile));
  }
  d.prog.add(program::Execute(cs));
  return d.read<std::uint16_t>(out, runs);
}

const FloatingPointBehaviour kStochastic{false, false, false, true, true};

}  // namespace

TEST(halves_of_codelets_round_to_both_sides_with_the_right_mean) {
  // Between 1 and 1 + 2^-10, a quarter of the way.
  const std::vector<float> x(8000, 0x1p-12f);
  const Halves got = sums(x, 1, &kStochastic);
  std::size_t up = 0;
  for (const auto bits : got) {
    CHECK(bits == floatToHalf(1) || bits == floatToHalf(1 + 0x1p-10f));
    up += bits != floatToHalf(1);
  }
  CHECK_NEAR(static_cast<double>(up), 2000, 4 * std::sqrt(8000 * 0.25 * 0.75));
  for (const auto bits : sums(x, 1, nullptr)) CHECK_EQ(bits, floatToHalf(1));  // to nearest
}

TEST(a_program_rounds_the_same_each_time_it_is_loaded) {
  const std::vector<float> x(400, 0x1p-11f);
  const Halves got = sums(x, 1, &kStochastic);
  CHECK(sums(x, 1, &kStochastic) == got);
  CHECK(sums(x, 1, &kStochastic, 2) != got);  // another run draws other numbers
  const Halves first(got.begin(), got.begin() + 100), second(got.begin() + 100, got.begin() + 200);
  CHECK(first != second);  // each tile has its own
}

TEST(values_that_are_halves_stay_and_overflow_is_as_set) {
  const std::vector<float> x = {0, 1, 0.5f, -3, 1000, 0x1p-24f, 65503, INFINITY, 70000};
  const Halves got = sums(x, 1, &kStochastic);
  for (const std::size_t i : {0, 1, 2, 3, 4, 6, 7}) CHECK_EQ(got[i], floatToHalf(1 + x[i]));
  CHECK(std::isnan(halfToFloat(got[8])));
  const FloatingPointBehaviour saturates{false, false, false, true, false};
  CHECK_EQ(sums(x, 1, &saturates)[8], floatToHalf(65504));
}
