#include <cmath>
#include <cstring>

#include "Check.hpp"
#include "engine/Half.hpp"
#include "engine/image/Image.hpp"
#include "popnn/NonLinearity.hpp"
#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Fill.hpp"
#include "popops/OnDevice.hpp"
#include "popops/ScaledAdd.hpp"
#include "popops/Zero.hpp"
#include "popops/internal/ElementWiseCost.hpp"

/// Elementwise functions as Poplar programs.
namespace {
namespace pe = popops::expr;
using poplar::FLOAT;
using poplar::HALF;
using poplar::INT;

std::vector<float> ramp(std::size_t n, float from, float step) {
  std::vector<float> v(n);
  for (std::size_t k = 0; k < n; ++k) v[k] = from + step * static_cast<float>(k);
  return v;
}

/// Runs a program once and reads several tensors.
class Run {
 public:
  Run(OnDevice& d, const std::vector<poplar::Tensor>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      d.graph.createHostRead("out" + std::to_string(i), tensors[i]);
    poplar::Engine engine(d.graph, d.prog);
    engine.load(poplar::Device(d.graph.getTarget()));
    for (auto& [input, bytes] : d.inputs)
      engine.writeTensor(input, bytes.data(), bytes.data() + bytes.size());
    engine.run(0);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto& t = tensors[i];
      auto& bytes = values_.emplace_back(t.numElements() * sizeOf(t.elementType().element()));
      engine.readTensor("out" + std::to_string(i), bytes.data(), bytes.data() + bytes.size());
    }
  }
  template <class T>
  std::vector<T> get(std::size_t i) const {
    std::vector<T> v(values_[i].size() / sizeof(T));
    std::memcpy(v.data(), values_[i].data(), values_[i].size());
    return v;
  }

 private:
  std::vector<std::vector<std::byte>> values_;
};

double cyclesOf(OnDevice& d) {
  return poplar::compileGraph(d.graph, {d.prog}).image()->cost().compute_cycles;
}
}  // namespace

TEST(map_broadcasts_like_numpy) {
  OnDevice d;
  auto a = d.iota({4, 3});
  auto row = d.input(FLOAT, {3}, std::vector<float>{10, 20, 30});
  auto column = d.input(FLOAT, {4, 1}, std::vector<float>{1, 2, 3, 4});
  auto r = popops::map(d.graph, (pe::_1 + pe::_2) * pe::_3 - 1.0f, {a, row, column}, d.prog, "f");
  CHECK(r.shape() == (std::vector<std::size_t>{4, 3}));
  const auto got = d.read<float>(r);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      CHECK_EQ(got[i * 3 + j], (static_cast<float>(i * 3 + j) + 10.0f * static_cast<float>(j + 1)) *
                                       static_cast<float>(i + 1) -
                                   1.0f);
}

TEST(named_functions_and_constants) {
  OnDevice d;
  auto a = d.input(FLOAT, {100}, ramp(100, -5, 0.1f));
  auto e = popops::exp(d.graph, a, d.prog);
  auto s = popops::add(d.graph, popops::mul(d.graph, e, 2.0f, d.prog), a, d.prog, "sum");
  auto c = popops::select(d.graph, s, a, popops::gt(d.graph, a, 0.0f, d.prog), d.prog);
  const auto x = ramp(100, -5, 0.1f);
  const auto got = d.read<float>(c);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const float want = x[k] > 0 ? std::exp(x[k]) * 2 + x[k] : x[k];
    CHECK_NEAR(got[k], want, std::abs(want) * 1e-6f);
  }
}

TEST(in_place_forms_write_their_operand) {
  OnDevice d;
  auto a = d.iota({1000});
  popops::mapInPlace(d.graph, pe::_1 * pe::_1, {a}, d.prog);
  popops::addInPlace(d.graph, a, 0.5f, d.prog);
  // Read backwards while written forwards, so it needs a temporary.
  popops::mapInPlace(d.graph, pe::_1 - pe::_2, {a, a.reverse(0)}, d.prog);
  const auto got = d.read<float>(a);
  for (int k = 0; k < 1000; ++k) {
    const auto i = static_cast<float>(k);
    CHECK_EQ(got[static_cast<std::size_t>(k)], (i * i + 0.5f) - ((999 - i) * (999 - i) + 0.5f));
  }
}

TEST(cast_fill_zero_and_scaled_add) {
  OnDevice d;
  auto a = d.input(FLOAT, {4}, std::vector<float>{1.7f, -2.5f, 1e20f, NAN});
  auto i = popops::cast(d.graph, a, INT, d.prog);
  auto h = popops::cast(d.graph, a, HALF, d.prog);
  auto f = d.graph.addVariable(FLOAT, {3, 5}, poplar::VariableMappingMethod::LINEAR);
  popops::fill(d.graph, f, d.prog, 2);
  popops::zero(d.graph, f.slice(1, 2), d.prog);
  auto b = d.iota({3, 5});
  popops::scaledAddTo(d.graph, f, b, 0.5f, d.prog);
  popops::scaledSubtractFrom(d.graph, f, b, b[0][1], d.prog);
  const Run run(d, {i, h, f});
  CHECK(run.get<int>(0) == (std::vector<int>{1, -2, 2147483647, 0}));
  const auto half = run.get<std::uint16_t>(1);
  CHECK_EQ(half[0], ipujax::engine::floatToHalf(1.7f));
  CHECK_EQ(half[2], 0x7c00);
  const auto got = run.get<float>(2);
  for (std::size_t k = 0; k < 15; ++k)
    CHECK_EQ(got[k], (k >= 5 && k < 10 ? 0.0f : 2.0f) - 0.5f * static_cast<float>(k));
}

TEST(non_linearities_and_their_gradients_agree) {
  using popnn::NonLinearityType;
  const auto x = ramp(81, -4.03f, 0.1f);
  for (auto type : {NonLinearityType::SIGMOID, NonLinearityType::TANH, NonLinearityType::RELU,
                    NonLinearityType::GELU, NonLinearityType::GELU_ERF, NonLinearityType::SWISH,
                    NonLinearityType::HARD_SIGMOID}) {
    constexpr float kStep = 1e-2f;
    std::vector<float> low = x;
    std::vector<float> high = x;
    for (auto& v : low) v -= kStep;
    for (auto& v : high) v += kStep;
    OnDevice d;
    auto at = d.input(FLOAT, {x.size()}, x);
    auto y = popnn::nonLinearity(d.graph, type, at, d.prog);
    auto y0 = popnn::nonLinearity(d.graph, type, d.input(FLOAT, {x.size()}, low), d.prog);
    auto y1 = popnn::nonLinearity(d.graph, type, d.input(FLOAT, {x.size()}, high), d.prog);
    auto ones = d.input(FLOAT, {x.size()}, std::vector<float>(x.size(), 1.0f));
    const bool from_input = type == NonLinearityType::GELU || type == NonLinearityType::GELU_ERF ||
                            type == NonLinearityType::SWISH ||
                            type == NonLinearityType::HARD_SIGMOID;
    auto g = popnn::nonLinearityInputGradient(d.graph, type, from_input ? at : y, ones, d.prog);
    const Run run(d, {g, y0, y1});
    const auto slope = run.get<float>(0);
    const auto before = run.get<float>(1);
    const auto after = run.get<float>(2);
    for (std::size_t k = 0; k < x.size(); ++k)
      CHECK_NEAR(slope[k], (after[k] - before[k]) / (2 * kStep), 2e-3);
  }
  OnDevice d;
  CHECK_THROWS(popnn::nonLinearity(d.graph, static_cast<NonLinearityType>(99), d.iota({3}), d.prog),
               "NonLinearityType");
}

TEST(gelu_and_its_gradient_keep_their_digits_far_below_zero) {
  using popnn::NonLinearityType;
  const auto x = ramp(60, -9.0f, 0.1f);
  OnDevice d;
  const auto at = d.input(FLOAT, {x.size()}, x);
  const auto ones = d.input(FLOAT, {x.size()}, std::vector<float>(x.size(), 1.0f));
  const auto halves = popops::cast(d.graph, at, poplar::HALF, d.prog);
  const auto rounded = popnn::nonLinearity(d.graph, NonLinearityType::GELU, halves, d.prog);
  const Run run(
      d, {popnn::nonLinearity(d.graph, NonLinearityType::GELU, at, d.prog),
          popnn::nonLinearityInputGradient(d.graph, NonLinearityType::GELU, at, ones, d.prog),
          popops::cast(d.graph, halves, FLOAT, d.prog),
          popops::cast(d.graph, rounded, FLOAT, d.prog)});
  const auto u = [](double v) { return 0.7978845608028654 * (v + 0.044715 * v * v * v); };
  const auto gelu = [&](double v) { return v / (1 + std::exp(-2 * u(v))); };
  const auto y = run.get<float>(0), slope = run.get<float>(1), h = run.get<float>(2),
             of_h = run.get<float>(3);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double v = x[k], s = 1 / (1 + std::exp(-2 * u(v)));
    const double expected = s + 2 * v * s * (1 - s) * 0.7978845608028654 * (1 + 0.134145 * v * v);
    CHECK_NEAR(y[k], gelu(v), 1e-4 * std::abs(gelu(v)));
    CHECK_NEAR(slope[k], expected, 1e-4 * std::abs(expected));
    CHECK_NEAR(of_h[k], gelu(h[k]), 3e-8 + 5e-4 * std::abs(gelu(h[k])));  // rounded once
  }
}

TEST(the_gradient_of_a_hard_sigmoid_is_by_its_argument) {
  using popnn::NonLinearityType;
  const std::vector<float> x{-3, -2.501f, -2.5f, -1, 0, 1, 2.5f, 2.501f, 3};
  OnDevice d;
  const auto g = popnn::nonLinearityInputGradient(
      d.graph, NonLinearityType::HARD_SIGMOID, d.input(FLOAT, {9}, x),
      d.input(FLOAT, {9}, std::vector<float>(9, 2.0f)), d.prog);
  const auto slope = Run(d, {g}).get<float>(0);
  for (std::size_t k = 0; k < x.size(); ++k)
    CHECK_EQ(slope[k], std::abs(x[k]) <= 2.5f ? 2 * 0.2f : 0.0f);
}

TEST(vertex_cycles_meet_the_measured_points) {
  using popops::elementwise::kTimerCycles;
  // tessellate-ipu: raw readings of the tile's cycle counter, its own 45 cycles included.
  const struct {
    const char* op;
    std::uint64_t n;
    double measured;
  } points[] = {{"scaled_add", 64, 375},   {"scaled_add", 128, 467}, {"scaled_add", 256, 665},
                {"scaled_add", 512, 1043}, {"add", 10, 329},         {"add", 1024, 1860}};
  for (const auto& p : points)
    CHECK_NEAR(popops::elementwiseCycles(p.op, FLOAT, p.n, 6) + kTimerCycles, p.measured,
               0.02 * p.measured);
  CHECK_THROWS(popops::elementwiseCycles("nonsense", FLOAT, 4, 6), "nonsense");
}

TEST(cost_grows_with_the_work) {
  std::vector<double> add;
  std::vector<double> exp;
  for (std::size_t n : {std::size_t{1} << 22, std::size_t{1} << 23}) {
    OnDevice d;
    auto a = d.graph.addVariable(FLOAT, {n}, poplar::VariableMappingMethod::LINEAR);
    auto b = d.graph.clone(a);
    popops::add(d.graph, a, b, d.prog);
    add.push_back(cyclesOf(d));
    OnDevice e;
    auto c = e.graph.addVariable(FLOAT, {n}, poplar::VariableMappingMethod::LINEAR);
    popops::map(e.graph, pe::Exp(pe::_1) * pe::_1 + 1.0f, {c}, e.prog);
    exp.push_back(cyclesOf(e));
  }
  CHECK_NEAR(add[1] / add[0], 2.0, 0.15);
  CHECK_NEAR(exp[1] / exp[0], 2.0, 0.15);
  CHECK(exp[0] > add[0]);
}

TEST(disagreements_are_named) {
  OnDevice d;
  auto a = d.iota({3});
  auto b = d.iota({4});
  auto i = d.graph.addVariable(INT, {3}, poplar::VariableMappingMethod::LINEAR);
  CHECK_THROWS(popops::add(d.graph, a, b, d.prog), "broadcast together");
  CHECK_THROWS(popops::add(d.graph, a, i, d.prog), "needs operands of one type");
  CHECK_THROWS(popops::map(d.graph, pe::_1, {}, d.prog), "at least one");
  CHECK_THROWS(popops::scaledAddTo(d.graph, a, b, 1.0f, d.prog), "one shape");
}
