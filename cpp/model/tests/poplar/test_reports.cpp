#include <cmath>
#include <poplin/MatMul.hpp>
#include <pva/pva.hpp>
#include <utility>
#include <vector>

#include "Check.hpp"
#include "engine/build/Build.hpp"
#include "poplar/internal/EngineProfile.hpp"
#include "public/Fixture.hpp"

using namespace poplar;

/// One program that no Engine runs, like JAX's programs.
TEST(reports_of_programs_without_entry_points_have_their_steps) {
  Fixture f(16);
  const auto a = f.constant<float>({32, 32}, std::vector<float>(1024, 0.5F));
  const auto b = poplin::matMul(f.graph, a, a, f.prog, "product");
  f.prog.add(program::Copy(poplin::matMul(f.graph, b, b, f.prog, "square"), b));
  ipujax::engine::BuildOptions build;
  build.options.set("profile", true);
  const auto image = ipujax::engine::buildImage(f.graph, f.prog, std::move(build));
  internal::RunLog log;
  log.add("jit_f", "0", image->cost(), {});
  const auto report = pva::reportFrom(log.report(*image, {}));
  const auto runs = report.execution().runs();
  CHECK_EQ(runs.size(), 1U);
  CHECK_EQ(runs[0].name(), "jit_f");
  double cycles = 0;
  for (const auto& step : runs[0].steps()) cycles += static_cast<double>(step.ipus()[0].cycles());
  CHECK(cycles > 0);
  CHECK(std::abs(cycles - image->cost().cycles()) < 10);
  CHECK(report.compilation().tiles()[0].memory().total().includingGaps() > 0);
}
