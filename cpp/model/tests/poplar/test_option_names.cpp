#include <unistd.h>

#include <cstdio>
#include <gcl/Collectives.hpp>
#include <poplin/MatMul.hpp>
#include <popops/DynamicSlice.hpp>
#include <poputil/OptionParsing.hpp>
#include <string>

#include "Check.hpp"
#include "poplar/internal/EngineOptionNames.hpp"
#include "poplar/internal/NearName.hpp"
#include "public/Fixture.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

/// The text that f writes to standard error.
template <class F>
std::string errorOutputOf(const F& f) {
  std::FILE* file = std::tmpfile();
  std::fflush(stderr);
  const int kept = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  f();
  std::fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

/// The name with two of its last letters swapped.
std::string misspelt(std::string name) {
  for (std::size_t i = name.size() - 1; i > 0; --i) {
    if (name[i] == name[i - 1]) continue;
    std::swap(name[i], name[i - 1]);
    return name;
  }
  return name;
}

}  // namespace

TEST(misspelt_options_of_engines_are_refused_with_the_name_that_is_meant) {
  Fixture f;
  for (const auto& option : internal::engineOptionNames()) {
    const std::string name(option.name);
    const std::string meant = "Did you mean '" + name + "'?";
    for (const std::string& wrong : {misspelt(name), name.substr(0, name.size() - 1)})
      CHECK_THROWS((Engine{f.graph, f.prog, OptionFlags{{wrong, "true"}}}), meant.c_str());
    CHECK_THROWS(RuntimeOptions({{misspelt(name), "true"}}), meant.c_str());
  }
  setenv("POPLAR_ENGINE_OPTIONS", R"({"debug.instrumnet": "true"})", 1);
  CHECK_THROWS((Engine{f.graph, f.prog}), "Did you mean 'debug.instrument'?");
  unsetenv("POPLAR_ENGINE_OPTIONS");
  CHECK_THROWS((Engine{f.graph, f.prog, {{"debgu.instrument", "true"}}}),
               "Did you mean 'debug.instrument'?");
  CHECK_THROWS((Engine{f.graph, f.prog, {{"speed", "high"}}}), "families (debug.*");
}

TEST(options_without_effect_are_said_once) {
  Fixture f;
  const OptionFlags options{{"target.saveArchive", "a"}, {"opt.madeUpHere", "1"}};
  const auto make = [&] { Engine(f.graph, f.prog, options); };
  CHECK_EQ(errorOutputOf(make),
           "ipujax: the IPU Model accepts these options, without effect: opt.madeUpHere, "
           "target.saveArchive.\n");
  CHECK_EQ(errorOutputOf(make), "");
  CHECK_EQ(errorOutputOf([&] { Engine(f.graph, f.prog, {{"debug.instrument", "true"}}); }), "");
  CHECK(errorOutputOf([] {
          RuntimeOptions({{"target.syncPollPeriodUs", "1"}});
        }).find("effect: target.syncPollPeriodUs.") != std::string::npos);
}

TEST(options_that_act_have_values_of_their_own) {
  Fixture f;
  for (const char* name : {"autoReport.all", "autoReport.outputGraphProfile", "debug.instrument",
                           "debug.allowOutOfMemory", "debug.floatPointOpException"})
    CHECK_THROWS((Engine{f.graph, f.prog, {{name, "perhaps"}}}), "= true | false; got perhaps");
}

TEST(a_graph_that_is_too_large_is_refused_where_allowing_it_is_off) {
  Fixture f(1);
  const auto t = f.variable("t", {1 << 20});
  f.prog.add(Copy(f.variable("u", {1 << 20}), t));
  CHECK_THROWS((Engine{f.graph, f.prog, {{"debug.allowOutOfMemory", "false"}}}), "");
  errorOutputOf([&] { Engine(f.graph, f.prog, {{"debug.allowOutOfMemory", "true"}}); });
}

TEST(misspelt_options_of_libraries_are_refused_with_the_name_that_is_meant) {
  Fixture f;
  const auto a = f.variable("a", {4, 4});
  CHECK_THROWS(poplin::matMul(f.graph, a, a, f.prog, "p", {{"partialsTpye", "half"}}),
               "Did you mean 'partialsType'?");
  CHECK_THROWS(gcl::allReduceCrossReplica(f.graph, a, gcl::CollectiveOperator::ADD, f.prog, "r",
                                          {{"methd", "auto"}}),
               "Did you mean 'method'?");
  CHECK_THROWS(
      popops::embedding::plan(f.graph, FLOAT, 8, 4, {2}, {{"availableMemoryProporton", "0.5"}}),
      "Did you mean 'availableMemoryProportion'?");
  int value = 0;
  const poplibs::OptionSpec spec{{"depth", poplibs::OptionHandler::createWithInteger(value)}};
  CHECK_THROWS(spec.parse("detph", "1"), "unknown option 'detph'. Did you mean 'depth'?");
}

TEST(names_that_are_like_no_other_have_no_hint) {
  const std::vector<std::string_view> known{"method", "topology"};
  CHECK_EQ(internal::didYouMean("speed", known), "");
  CHECK_EQ(internal::didYouMean("METHOD", known), "Did you mean 'method'? ");
  CHECK_EQ(internal::didYouMean(std::string(100'000, 'm'), known), "");
}
