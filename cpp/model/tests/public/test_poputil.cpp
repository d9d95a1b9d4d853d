#include <algorithm>
#include <climits>
#include <cmath>
#include <optional>
#include <poplar/OptionFlags.hpp>
#include <poplar/Quarter.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <poputil/GraphFunction.hpp>
#include <poputil/Loop.hpp>
#include <poputil/OptionParsing.hpp>
#include <poputil/Util.hpp>
#include <random>
#include <string>
#include <vector>

#include "Check.hpp"
#include "Fixture.hpp"

using poplibs::OptionHandler;
using poplibs::OptionSpec;

namespace {

enum class Method { kAmp, kMac };

struct Options {
  Method method = Method::kAmp;
  unsigned count = 1;
  bool is_fast = false;
  double share = 0.5;
  std::string name;
  std::vector<int> sizes;
  std::optional<float> limit;
  std::optional<Method> fallback = Method::kAmp;
};

Options read(const poplar::OptionFlags& flags, bool ignoreUnknown = false) {
  Options o;
  const std::map<std::string, Method> methods{{"amp", Method::kAmp}, {"mac", Method::kMac}};
  const OptionSpec spec{{"method", OptionHandler::createWithEnum(o.method, methods)},
                        {"count", OptionHandler::createWithInteger(o.count)},
                        {"fast", OptionHandler::createWithBool(o.is_fast)},
                        {"share", OptionHandler::createWithDouble(o.share, 0.0, true, 1.0, false)},
                        {"name", OptionHandler::createWithString(o.name)},
                        {"sizes", OptionHandler::createWithList(o.sizes)},
                        {"limit", poplibs::createOptionalDoubleHandler(o.limit)},
                        {"fallback", poplibs::createOptionalEnumHandler(o.fallback, methods)},
                        {"twice", OptionHandler{[&](poplar::StringRef v) {
                           o.count = 2 * poplibs::parse::asInteger<unsigned>(v);
                         }}}};
  for (const auto& entry : flags) spec.parse(entry.first, entry.second, ignoreUnknown);
  return o;
}

}  // namespace

TEST(options_are_written_to_their_variables) {
  const auto o = read({{"method", "mac"},
                       {"count", "0x10"},
                       {"fast", "true"},
                       {"share", "0"},
                       {"name", "a b"},
                       {"sizes", "3,-4,0xf"},
                       {"limit", "2.5"},
                       {"fallback", "none"}});
  CHECK(o.method == Method::kMac);
  CHECK_EQ(o.count, 16U);
  CHECK(o.is_fast);
  CHECK_EQ(o.share, 0.0);
  CHECK_EQ(o.name, std::string("a b"));
  CHECK(o.sizes == (std::vector<int>{3, -4, 15}));
  CHECK_EQ(*o.limit, 2.5F);
  CHECK(!o.fallback);
  CHECK_EQ(read({{"twice", "21"}}).count, 42U);
}

TEST(wrong_options_name_themselves) {
  CHECK_THROWS(read({{"metod", "amp"}}), "metod");
  CHECK(read({{"metod", "amp"}}, true).method == Method::kAmp);
  CHECK_THROWS(read({{"method", "slow"}}), "['amp', 'mac']");
  CHECK_THROWS(read({{"count", "3x"}}), "3x");
  CHECK_THROWS(read({{"fast", "yes"}}), "fast");
  CHECK_THROWS(read({{"share", "1"}}), "[0, 1)");
  CHECK_THROWS(read({{"share", "much"}}), "much");
  CHECK_THROWS(read({{"sizes", "1,b"}}), "sizes");
  bool is_invalid_option = false;
  try {
    OptionHandler::ensureValueIsWithinBounds(3, 3, false, 9, true);
  } catch (const poplar::invalid_option&) {
    is_invalid_option = true;
  }
  CHECK(is_invalid_option);
  OptionHandler::ensureValueIsWithinBounds(9, 3, false, 9, true);
}

TEST(shuffled_intervals_are_put_back) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    // Cut 0 .. 29 into runs and shuffle these.
    std::vector<poplar::Interval> runs;
    for (std::size_t at = 0; at < 30;) {
      const std::size_t end = std::min<std::size_t>(30, at + 1 + random() % 6);
      runs.emplace_back(at, end);
      at = end;
    }
    std::shuffle(runs.begin(), runs.end(), random);
    std::vector<std::size_t> shuffled;
    for (const auto& run : runs)
      for (std::size_t i = run.begin(); i < run.end(); ++i) shuffled.push_back(i);
    std::vector<std::size_t> back;
    for (const auto& run : poputil::calculateUnshufflingIntervals(runs))
      for (std::size_t i = run.begin(); i < run.end(); ++i) back.push_back(shuffled[i]);
    CHECK_EQ(back.size(), 30U);
    for (std::size_t i = 0; i < 30; ++i) CHECK_EQ(back[i], i);
  }
}

TEST(bodies_of_graph_functions_may_take_the_name) {
  using namespace poputil;
  for (const bool inlined : {false, true}) {
    Fixture f;
    std::vector<std::string> names;
    const auto x = f.constant<float>({3}, {1, 2, 3});
    const auto y = f.constant<float>({3}, {10, 20, 30});
    graphfn::VoidFunction add(
        f.graph, {graphfn::inout(x), graphfn::input(y)},
        [&](std::vector<poplar::Tensor>& args, poplar::program::Sequence& prog,
            const poplar::DebugNameAndId& name) {
          names.push_back(name.getPathName());
          popops::addInPlace(f.graph, args[0], args[1], prog, {name});
        },
        inlined, "add");
    graphfn::ProgramFunction twice(
        f.graph, {graphfn::input(x), graphfn::created()},
        [&](std::vector<poplar::Tensor>& args, const poplar::DebugNameAndId& name) {
          poplar::program::Sequence prog;
          args[1] = popops::add(f.graph, args[0], args[0], prog, {name, "twice"});
          return prog;
        },
        inlined);
    graphfn::TensorFunction negated(
        f.graph, {graphfn::input(x)},
        [&](std::vector<poplar::Tensor>& args, poplar::program::Sequence& prog,
            const poplar::DebugNameAndId& name) {
          return popops::neg(f.graph, args[0], prog, {name});
        },
        inlined);
    std::vector<poplar::Tensor> sum{x, y};
    add(sum, f.prog, "first");
    add(sum, f.prog, "second");
    std::vector<poplar::Tensor> doubled{x, poplar::Tensor()};
    f.prog.add(twice(doubled, "call"));
    std::vector<poplar::Tensor> last{doubled[1]};
    const auto got = f.run(negated(last, f.prog));
    CHECK(got == (std::vector<float>{-42, -84, -126}));
    CHECK(names == (inlined ? std::vector<std::string>{"first", "second"}
                            : std::vector<std::string>{"add"}));
  }
}

TEST(the_older_counted_loop) {
  Fixture f;
  const auto sum = f.constant<unsigned>({1}, {0});
  f.prog.add(poputil::countedLoop(f.graph, 1, 10, 2, "loop", [&](const poplar::Tensor& i) {
    poplar::program::Sequence body;
    popops::addInPlace(f.graph, sum, i, body);
    return body;
  }));
  f.prog.add(poputil::countedLoop(f.graph, 3, "again", [&](const poplar::Tensor& i) {
    poplar::program::Sequence body;
    popops::addInPlace(f.graph, sum, i, body);
    return body;
  }));
  CHECK_EQ(f.run<unsigned>(sum)[0], 1U + 3 + 5 + 7 + 9 + 0 + 1 + 2);
  CHECK_THROWS(poputil::countedLoop(f.graph, 5, 5, 1, "none", {}), "begin < end");
}

TEST(factored_dimensions_move_inside_and_come_back) {
  std::mt19937 random(5);
  for (int round = 0; round < 8; ++round) {
    const std::size_t a = 1 + random() % 3, b = 1 + random() % 3, c = 1 + random() % 3;
    const std::size_t p = 1 + random() % 3, q = 1 + random() % 3;
    Fixture f;
    const auto values = randomFloats(random, a * b * p * c * q);
    const auto t = f.constant<float>({a, b * p, c * q}, values);
    const auto split = poputil::factorDims(t, {p, q}, 1);
    CHECK(split.shape() == (std::vector<std::size_t>{a, b, c, p, q}));
    CHECK(poputil::unfactorDims(split, 2, 1).shape() == t.shape());
    std::vector<float> wanted;
    for (std::size_t i = 0; i < a; ++i)
      for (std::size_t j = 0; j < b; ++j)
        for (std::size_t k = 0; k < c; ++k)
          for (std::size_t x = 0; x < p; ++x)
            for (std::size_t y = 0; y < q; ++y)
              wanted.push_back(values[(i * b * p + j * p + x) * c * q + k * q + y]);
    const auto back = poputil::unfactorDims(split, 2, 1);
    auto got = f.run(poplar::concat(split.flatten(), back.flatten()));
    wanted.insert(wanted.end(), values.begin(), values.end());
    CHECK(got == wanted);
  }
  Fixture f;
  const auto t = f.variable("t", {4, 6});
  CHECK_THROWS(poputil::factorDims(t, {4}, 1), "factor");
}

TEST(intervals_of_all_tiles_make_one_list) {
  using poplar::Interval;
  CHECK(poputil::flattenIntervals({{{4, 6}}, {}, {{0, 1}, {2, 4}}}) ==
        (std::vector<Interval>{{4, 6}, {0, 1}, {2, 4}}));
}

TEST(values_round_as_halves_on_the_host) {
  Fixture f;
  const auto& target = f.graph.getTarget();
  CHECK_EQ(poputil::castToDeviceHalfValue(target, 1.0 + 1.0 / 4096), 1.0);
  CHECK_EQ(poputil::castToDeviceHalfValue(target, -2049.5), -2050.0);
  CHECK(std::isinf(poputil::castToDeviceHalfValue(target, 1e6)));
}

TEST(metadata_of_quarters_scale_casts) {
  using Format = poplar::QuarterMetadata::Format;
  for (const bool is_set_by_program : {false, true}) {
    Fixture f;
    const auto metadata = is_set_by_program
                              ? poputil::createMetadataTensor(f.graph, Format::F152, 3, f.prog)
                              : poputil::createMetadataTensor(f.graph, Format::F152, 3);
    const auto x = f.constant<float>({3}, {8, -16, 48}, poplar::HALF);
    const auto q = popops::cast(f.graph, x, poplar::QUARTER, metadata, f.prog);
    const auto back = popops::cast(f.graph, q, poplar::HALF, f.prog);
    CHECK(f.run(popops::cast(f.graph, back, poplar::FLOAT, f.prog)) ==
          (std::vector<float>{8, -16, 48}));
  }
}

TEST(sequences_of_regions_have_at_most_so_many_elements) {
  const auto sizes = [](const std::vector<std::vector<poplar::Interval>>& part) {
    std::vector<std::size_t> n;
    for (const auto& sequence : part) {
      n.push_back(0);
      for (const auto& region : sequence) n.back() += region.size();
    }
    return n;
  };
  const std::vector<std::vector<poplar::Interval>> regions{{{0, 30}, {40, 61}}, {{70, 80}}};
  const auto parts = poputil::splitRegions(regions, 4, 1, 0, UINT_MAX, 22);
  CHECK_EQ(parts.size(), 1U);
  CHECK(sizes(parts[0]) == (std::vector<std::size_t>{20, 20, 11, 10}));
  CHECK(parts[0][1] == (std::vector<poplar::Interval>{{20, 30}, {40, 50}}));
}
