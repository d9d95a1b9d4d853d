// Stochastic rounding of popops draws from the generators that poprand and poplar seed.
#include "Check.hpp"
#include "poplar/CSRFunctions.hpp"
#include "poplar/RandomSeed.hpp"
#include "popops/Cast.hpp"
#include "popops/OnDevice.hpp"
#include "poprand/RandomGen.hpp"

using namespace poplar;

namespace {

using Halves = std::vector<std::uint16_t>;
constexpr std::size_t kCount = 500;

struct Rounds : OnDevice {
  Tensor x;
  std::vector<Tensor> made;

  Rounds() {
    setStochasticRounding(graph, prog, true);
    x = input<float>(FLOAT, {kCount}, std::vector<float>(kCount, 1 + 0x1p-11f));
  }
  void seed(unsigned low) {
    poprand::setSeed(graph, input<unsigned>(UNSIGNED_INT, {2}, {low, 7}), 0, prog);
  }
  void round() { made.push_back(popops::cast(graph, x, HALF, prog).expand({0})); }
  /// The results of each rounding.
  std::vector<Halves> results(int runs = 1) {
    const auto all = read<std::uint16_t>(concat(made), runs);
    std::vector<Halves> parts;
    for (std::size_t i = 0; i < made.size(); ++i)
      parts.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i * kCount),
                         all.begin() + static_cast<std::ptrdiff_t>((i + 1) * kCount));
    return parts;
  }
};

}  // namespace

TEST(a_seed_begins_the_random_bits_of_rounding_again) {
  Rounds d;
  d.seed(1);
  d.round();
  d.round();
  d.seed(1);
  d.round();
  d.seed(2);
  d.round();
  const auto got = d.results();
  CHECK(got[0] != got[1]);
  CHECK(got[0] == got[2]);
  CHECK(got[0] != got[3]);
}

TEST(what_is_done_again_with_the_seeds_of_before_rounds_alike) {
  Rounds d;
  d.round();
  const Tensor before = getHwSeeds(d.graph, d.prog);
  d.round();
  setHwSeeds(d.graph, before, d.prog);
  d.round();
  const auto got = d.results();
  CHECK(got[0] != got[1]);
  CHECK(got[1] == got[2]);
}

TEST(runs_round_apart_and_a_loaded_program_as_before) {
  const auto after = [](int runs) {
    Rounds d;
    d.round();
    return d.results(runs)[0];
  };
  CHECK(after(1) == after(1));
  CHECK(after(1) != after(2));
  CHECK(after(2) == after(2));
}
