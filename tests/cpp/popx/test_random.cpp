#include <algorithm>
#include <cmath>

#include "Check.hpp"
#include "engine/Half.hpp"
#include "popops/OnDevice.hpp"
#include "poprand/RandomGen.hpp"
#include "popx/Random.hpp"

using namespace poplar;
using Floats = std::vector<float>;
using Words = std::vector<std::uint32_t>;

namespace {

/// Runs one generator over n elements, seeded with {seed, 1}.
template <class F>
Floats draw(std::size_t n, F make, unsigned seed = 7, Type type = FLOAT) {
  OnDevice d;
  const Tensor s = d.input<unsigned>(UNSIGNED_INT, {2}, {seed, 1});
  const Tensor reference = d.graph.addVariable(type, {n}, VariableMappingMethod::LINEAR);
  return d.read<float>(make(d, &s, reference));
}

double mean(const Floats& x) {
  double sum = 0;
  for (float v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

double deviation(const Floats& x) {
  const double m = mean(x);
  double sum = 0;
  for (float v : x) sum += (v - m) * (v - m);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

constexpr std::size_t kN = 100001;

}  // namespace

TEST(uniform_is_uniform_and_repeatable) {
  const auto make = [](OnDevice& d, const Tensor* s, const Tensor& r) {
    return poprand::uniform(d.graph, s, 3, r, FLOAT, -2, 4, d.prog);
  };
  const auto x = draw(kN, make);
  CHECK_NEAR(mean(x), 1.0, 0.02);
  CHECK_NEAR(deviation(x), 6 / std::sqrt(12.0), 0.02);
  CHECK(*std::min_element(x.begin(), x.end()) >= -2);
  CHECK(*std::max_element(x.begin(), x.end()) <= 4);
  CHECK(x == draw(kN, make));
  CHECK(x != draw(kN, make, 8));
  CHECK(x != draw(kN, [](OnDevice& d, const Tensor* s, const Tensor& r) {
          return poprand::uniform(d.graph, s, 4, r, FLOAT, -2, 4, d.prog);
        }));
}

TEST(uniform_does_not_depend_on_how_many_are_drawn) {
  const auto make = [](OnDevice& d, const Tensor* s, const Tensor& r) {
    return poprand::uniform(d.graph, s, 0, r, FLOAT, 0, 1, d.prog);
  };
  const auto all = draw(1003, make);
  const auto few = draw(5, make);
  CHECK(std::equal(few.begin(), few.end(), all.begin()));
}

TEST(uniform_integers_cover_their_range) {
  OnDevice d;
  const Tensor s = d.input<unsigned>(UNSIGNED_INT, {2}, {1, 2});
  const Tensor r = d.graph.addVariable(FLOAT, {10000}, VariableMappingMethod::LINEAR);
  const auto x = d.read<int>(poprand::uniform(d.graph, &s, 0, r, INT, -1, 2, d.prog));
  for (int v = -1; v <= 2; ++v) {
    CHECK_NEAR(static_cast<double>(std::count(x.begin(), x.end(), v)), 2500.0, 200.0);
  }
}

TEST(normal_has_its_moments) {
  const auto x = draw(kN, [](OnDevice& d, const Tensor* s, const Tensor& r) {
    return poprand::normal(d.graph, s, 0, r, FLOAT, 3, 2, d.prog);
  });
  CHECK_NEAR(mean(x), 3.0, 0.03);
  CHECK_NEAR(deviation(x), 2.0, 0.03);
  const auto within =
      std::count_if(x.begin(), x.end(), [](float v) { return std::abs(v - 3) < 2; });
  CHECK_NEAR(static_cast<double>(within) / kN, 0.6827, 0.01);
}

TEST(truncated_normal_stays_within) {
  const auto x = draw(kN, [](OnDevice& d, const Tensor* s, const Tensor& r) {
    return poprand::truncatedNormal(d.graph, s, 0, r, FLOAT, 1, 2, 1.5, d.prog);
  });
  for (float v : x) CHECK(std::abs(v - 1) <= 3.0001f);
  CHECK_NEAR(mean(x), 1.0, 0.02);
  // Deviation of a standard normal cut at 1.5: sqrt(1 - 2 a phi(a) / (2 Phi(a) - 1)).
  CHECK_NEAR(deviation(x), 2 * 0.7431, 0.02);
}

TEST(bernoulli_and_dropout_keep_their_share) {
  const auto x = draw(kN, [](OnDevice& d, const Tensor* s, const Tensor& r) {
    return poprand::bernoulli(d.graph, s, 0, r, FLOAT, 0.3, d.prog);
  });
  CHECK_NEAR(mean(x), 0.3, 0.01);
  const auto all = draw(1000, [](OnDevice& d, const Tensor* s, const Tensor& r) {
    return poprand::bernoulli(d.graph, s, 0, r, FLOAT, 1.0, d.prog);
  });
  CHECK_EQ(mean(all), 1.0);
  OnDevice d;
  const Tensor s = d.input<unsigned>(UNSIGNED_INT, {2}, {1, 2});
  const Tensor in = d.input<float>(FLOAT, {kN}, Floats(kN, 3.0f));
  const auto y = d.read<float>(poprand::dropout(d.graph, &s, 0, in, in, 0.25, 4.0, d.prog));
  for (float v : y) CHECK(v == 0.0f || v == 12.0f);
  CHECK_NEAR(mean(y), 3.0, 0.1);
}

TEST(shaped_dropout_drops_whole_rows) {
  OnDevice d;
  const Tensor s = d.input<unsigned>(UNSIGNED_INT, {2}, {1, 2});
  const Tensor in = d.input<float>(FLOAT, {100, 4}, Floats(400, 1.0f));
  const Tensor reference = d.graph.addVariable(FLOAT, {100, 1}, VariableMappingMethod::LINEAR);
  const auto y =
      d.read<float>(poprand::shapedDropout(d.graph, &s, 0, in, reference, 0.5, 2.0, d.prog));
  for (std::size_t i = 0; i < 400; ++i) CHECK_EQ(y[i], y[i / 4 * 4]);
  CHECK_NEAR(mean(y), 1.0, 0.3);
}

TEST(without_a_seed_calls_differ_and_set_seed_repeats) {
  OnDevice d;
  const Tensor s = d.input<unsigned>(UNSIGNED_INT, {2}, {5, 6});
  const Tensor r = d.graph.addVariable(FLOAT, {64}, VariableMappingMethod::LINEAR);
  const auto uniform = [&] {
    return poprand::uniform(d.graph, nullptr, 0, r, FLOAT, 0, 1, d.prog);
  };
  poprand::setSeed(d.graph, s, 9, d.prog);
  const Tensor a = uniform();
  const Tensor b = uniform();
  poprand::setSeed(d.graph, s, 9, d.prog);
  const Tensor c = uniform();
  const auto x = d.read<float>(concat({a, b, c}));
  CHECK(!std::equal(x.begin(), x.begin() + 64, x.begin() + 64));
  CHECK(std::equal(x.begin(), x.begin() + 64, x.begin() + 128));
}

TEST(half_uniform_is_rounded_to_half) {
  OnDevice d;
  const Tensor s = d.input<unsigned>(UNSIGNED_INT, {2}, {5, 6});
  const Tensor r = d.graph.addVariable(HALF, {1000}, VariableMappingMethod::LINEAR);
  const auto x = d.read<std::uint16_t>(poprand::uniform(d.graph, &s, 0, r, HALF, 1, 2, d.prog));
  for (auto bits : x) {
    const float v = ipujax::engine::halfToFloat(bits);
    CHECK(v >= 1 && v <= 2);
  }
}

TEST(random_functions_check_their_arguments) {
  OnDevice d;
  const Tensor wrong = d.input<unsigned>(UNSIGNED_INT, {3}, {5, 6, 7});
  const Tensor r = d.graph.addVariable(FLOAT, {4}, VariableMappingMethod::LINEAR);
  CHECK_THROWS(poprand::uniform(d.graph, &wrong, 0, r, FLOAT, 0, 1, d.prog), "two UNSIGNED_INT");
  CHECK_THROWS(poprand::normal(d.graph, nullptr, 0, r, INT, 0, 1, d.prog), "FLOAT or HALF");
  CHECK_THROWS(poprand::bernoulli(d.graph, nullptr, 0, r, FLOAT, 1.5, d.prog), "probability");
}

namespace {

/// The bits of one shape from the state {1, 2, 3, 4}, followed by the new state.
template <class T = std::uint32_t>
std::pair<std::vector<T>, Words> bits(const std::string& algorithm, std::vector<std::size_t> shape,
                                      Type type = UNSIGNED_INT) {
  std::pair<std::vector<T>, Words> result;
  for (const bool state : {false, true}) {
    OnDevice d;
    const Tensor s = d.input<unsigned>(UNSIGNED_INT, {4}, {1, 2, 3, 4});
    const auto out = popx::rngBitGenerator(d.graph, s, algorithm, shape, type, d.prog);
    if (state) {
      result.second = d.read<std::uint32_t>(out.first);
    } else {
      result.first = d.read<T>(out.second);
    }
  }
  return result;
}

std::uint64_t sum(const Words& words) {
  std::uint64_t total = 0;
  for (auto w : words) total += w;
  return total;
}

}  // namespace

// Expected values: jax.lax.rng_bit_generator on XLA's CPU backend, key [1, 2, 3, 4].
TEST(threefry_bits_are_xlas) {
  CHECK(bits("threefry", {}).first == (Words{1576285164u}));
  CHECK(bits("threefry", {}).second == (Words{1, 2, 4, 4}));
  const auto five = bits("threefry", {5});
  CHECK(five.first == (Words{1576285164u, 2249660814u, 740599976u, 2425682526u, 2436392515u}));
  CHECK(five.second == (Words{1, 2, 6, 4}));
  const auto split = bits("threefry", {3, 5});  // no even dimension: split along the largest
  CHECK_EQ(split.first[5], 1335360347u);
  CHECK_EQ(sum(split.first), 37551967022u);
  CHECK(split.second == (Words{1, 2, 12, 4}));
  CHECK_EQ(sum(bits("threefry", {3, 2}).first), 10926583772u);
  CHECK_EQ(sum(bits("threefry", {3, 5, 7}).first), 225329921026u);
}

TEST(philox_bits_are_xlas) {
  const auto five = bits("philox", {5});
  CHECK(five.first == (Words{512747620u, 1298009047u, 1267190206u, 761827841u, 1383286907u}));
  CHECK(five.second == (Words{1, 2, 5, 4}));
  const auto many = bits("default", {3, 5, 7});
  CHECK_EQ(sum(many.first), 226886983693u);
  CHECK(many.second == (Words{1, 2, 30, 4}));
}

TEST(bits_of_other_widths_are_xlas) {
  CHECK(bits<std::uint16_t>("threefry", {5}, UNSIGNED_SHORT).first ==
        (std::vector<std::uint16_t>{13292, 6542, 43176, 64094, 26179}));
  CHECK(bits<std::uint8_t>("philox", {5}, UNSIGNED_CHAR).first ==
        (std::vector<std::uint8_t>{100, 215, 190, 1, 123}));
  const auto three = bits<std::uint64_t>("threefry", {5}, UNSIGNED_LONGLONG);
  CHECK_EQ(three.first[0], 9662219624799024108u);
  CHECK_EQ(three.first[4], 16980371968582007637u);
  CHECK(three.second == (Words{1, 2, 8, 4}));
  const auto phil = bits<std::uint64_t>("philox", {5}, UNSIGNED_LONGLONG);
  CHECK_EQ(phil.first[1], 3272025663544478142u);
  CHECK(phil.second == (Words{1, 2, 6, 4}));
}

TEST(rng_refuses_what_it_has_not) {
  OnDevice d;
  const Tensor s = d.input<unsigned>(UNSIGNED_INT, {4}, {1, 2, 3, 4});
  CHECK_THROWS(popx::rngBitGenerator(d.graph, s, "mersenne", {1}, INT, d.prog), "mersenne");
  CHECK_THROWS(popx::rngBitGenerator(d.graph, s.slice(0, 3), "philox", {1}, INT, d.prog),
               "16 bytes");
}
