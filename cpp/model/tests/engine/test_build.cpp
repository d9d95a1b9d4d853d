#include <algorithm>

#include "Check.hpp"
#include "engine/build/Build.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "engine/image/Image.hpp"
#include "engine/run/Session.hpp"
#include "poplar/Graph.hpp"
#include "poplin/MatMul.hpp"
#include "popops/DynamicSlice.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Zero.hpp"

using namespace poplar;
using namespace poplar::program;
namespace engine = ipujax::engine;

namespace {

constexpr std::size_t kN = 1000;

struct Built {
  Graph graph{Target()};
  Sequence prog;
  engine::BuildOptions options;

  Tensor input(const char* name) {
    const Tensor t = graph.addVariable(FLOAT, {kN}, VariableMappingMethod::LINEAR, name);
    prog.add(Copy(graph.addHostToDeviceFIFO(name, FLOAT, kN), t));
    options.signature.inputs.push_back({"float32", {kN}, 4 * kN, {}});
    return t;
  }
  void output(const Tensor& t, int alias = -1) {
    const std::string name = "out" + std::to_string(options.signature.outputs.size());
    prog.add(Copy(t, graph.addDeviceToHostFIFO(name, FLOAT, kN)));
    options.signature.outputs.push_back({"float32", {kN}, 4 * kN, {}});
    options.signature.output_alias.push_back(alias);
  }
  std::shared_ptr<const engine::Image> build() { return engine::buildImage(graph, prog, options); }
};

std::size_t copies(const engine::Image& image) {
  return static_cast<std::size_t>(
      std::count_if(image.steps.begin(), image.steps.end(),
                    [](const auto& step) { return step.kernel == "engine.copy"; }));
}

std::vector<float> filled(float value) { return std::vector<float>(kN, value); }

void run(const std::shared_ptr<const engine::Image>& image, std::vector<const void*> inputs,
         std::vector<void*> outputs) {
  engine::Session session(image, std::make_shared<engine::DeviceMemory>());
  session.run(inputs, outputs);
}

}  // namespace

TEST(inputs_and_outputs_are_bound_without_copies) {
  Built b;
  const Tensor x = b.input("x");
  b.output(popops::add(b.graph, x, x, b.prog));
  const auto image = b.build();
  CHECK_EQ(copies(*image), 0u);
  CHECK_EQ(image->arena_bytes, 0u);
  const auto in = filled(2);
  auto out = filled(0);
  run(image, {in.data()}, {out.data()});
  CHECK_EQ(out[kN - 1], 4.0f);
}

TEST(a_donated_parameter_is_updated_in_place) {
  Built b;
  const Tensor p = b.input("p");
  const Tensor g = b.input("g");
  b.prog.add(Copy(popops::sub(b.graph, p, g, b.prog), p));
  b.output(p, 0);
  const auto image = b.build();
  CHECK_EQ(copies(*image), 0u);
  CHECK_EQ(image->arena_bytes, 0u);
  auto param = filled(5);
  const auto grad = filled(2);
  run(image, {param.data(), grad.data()}, {param.data()});
  CHECK_EQ(param[0], 3.0f);
}

TEST(a_donated_parameter_that_is_kept_stays_unharmed) {
  Built b;
  const Tensor p = b.input("p");
  b.prog.add(Copy(popops::add(b.graph, p, p, b.prog), p));
  b.output(p, 0);
  const auto param = filled(5);
  auto out = filled(0);
  run(b.build(), {param.data()}, {out.data()});
  CHECK_EQ(param[0], 5.0f);
  CHECK_EQ(out[0], 10.0f);
}

TEST(a_late_reader_of_a_donated_parameter_sees_the_old_value) {
  Built b;
  const Tensor p = b.input("p");
  const Tensor twice = popops::add(b.graph, p, p, b.prog);
  const Tensor square = popops::mul(b.graph, p, p, b.prog);
  b.prog.add(Copy(twice, p));
  b.output(p, 0);
  b.output(square);
  auto param = filled(3);
  auto other = filled(0);
  run(b.build(), {param.data()}, {param.data(), other.data()});
  CHECK_EQ(param[0], 6.0f);
  CHECK_EQ(other[0], 9.0f);
}

TEST(a_result_that_is_a_parameter_is_copied) {
  Built b;
  const Tensor x = b.input("x");
  b.output(x);
  const auto in = filled(7);
  auto out = filled(0);
  const auto image = b.build();
  CHECK_EQ(copies(*image), 1u);
  run(image, {in.data()}, {out.data()});
  CHECK_EQ(out[kN / 2], 7.0f);
}

TEST(one_tensor_as_two_results) {
  Built b;
  const Tensor x = b.input("x");
  const Tensor y = popops::add(b.graph, x, x, b.prog);
  b.output(y);
  b.output(y);
  const auto in = filled(1);
  auto first = filled(0);
  auto second = filled(0);
  run(b.build(), {in.data()}, {first.data(), second.data()});
  CHECK_EQ(first[3], 2.0f);
  CHECK_EQ(second[3], 2.0f);
}

TEST(a_loop_carry_is_updated_in_place) {
  Built b;
  const Tensor x = b.input("x");
  const Tensor c = b.graph.addVariable(FLOAT, {kN}, VariableMappingMethod::LINEAR, "c");
  b.prog.add(Copy(x, c));
  Sequence body;
  body.add(Copy(popops::add(b.graph, c, x, body), c));
  b.prog.add(Repeat(4, body));
  b.output(c);
  const auto image = b.build();
  CHECK_EQ(copies(*image), 1u);
  CHECK_EQ(image->arena_bytes, 0u);
  const auto in = filled(1);
  auto out = filled(0);
  run(image, {in.data()}, {out.data()});
  CHECK_EQ(out[0], 5.0f);
}

TEST(copies_of_a_function_that_is_called_several_times_are_removed) {
  Built b;
  const Tensor x = b.input("x");
  const Tensor c = b.graph.addVariable(FLOAT, {kN}, VariableMappingMethod::LINEAR, "c");
  b.prog.add(Copy(x, c));
  Sequence body;
  body.add(Copy(popops::add(b.graph, c, x, body), c));
  const Function function = b.graph.addFunction(body);
  for (int i = 0; i < 3; ++i) b.prog.add(Call(function));
  b.output(c);
  const auto image = b.build();
  CHECK_EQ(copies(*image), 1u);
  CHECK_EQ(image->arena_bytes, 0u);
  const auto in = filled(1);
  auto out = filled(0);
  run(image, {in.data()}, {out.data()});
  CHECK_EQ(out[0], 4.0f);
}

TEST(memory_is_counted_by_the_use_of_variables_and_not_by_their_names) {
  using engine::VariableUse;
  for (const auto use : {VariableUse::kTemporary, VariableUse::kAccumulator, VariableUse::kStash}) {
    Built b;
    const Tensor x = b.input("x");
    const Tensor c =
        b.graph.addVariable(FLOAT, {kN}, VariableMappingMethod::LINEAR, "pipeline.stash");
    if (use != VariableUse::kTemporary) b.graph.impl().variables.back().use = use;
    b.prog.add(Copy(x.reverse(0), c));
    b.output(popops::add(b.graph, x, c, b.prog));
    const engine::TileParts parts = b.build()->ipus.at(0).worst_tile;
    CHECK_EQ(parts[engine::TilePart::kAccumulators] > 0, use == VariableUse::kAccumulator);
    CHECK_EQ(parts[engine::TilePart::kStash] > 0, use == VariableUse::kStash);
  }
}

TEST(a_carry_copied_out_and_back_is_updated_in_place) {
  Built b;
  const Tensor x = b.input("x");
  const Tensor c = b.graph.addVariable(FLOAT, {kN}, VariableMappingMethod::LINEAR, "c");
  b.prog.add(Copy(x, c));
  Sequence body;
  const Tensor whole = b.graph.addVariable(FLOAT, {kN}, VariableMappingMethod::LINEAR, "whole");
  body.add(Copy(c, whole));
  popops::addInPlace(b.graph, whole.slice(0, 10), x.slice(0, 10), body);
  body.add(Copy(whole, c));
  b.prog.add(Repeat(3, body));
  b.output(c);
  const auto image = b.build();
  CHECK_EQ(copies(*image), 1u);
  const auto in = filled(1);
  auto out = filled(0);
  run(image, {in.data()}, {out.data()});
  CHECK_EQ(out[9], 4.0f);
  CHECK_EQ(out[10], 1.0f);
}

TEST(swapped_carries_are_not_merged_wrongly) {
  Built b;
  const Tensor x = b.input("x");
  const Tensor y = b.input("y");
  const auto variable = [&](const char* name) {
    return b.graph.addVariable(FLOAT, {kN}, VariableMappingMethod::LINEAR, name);
  };
  const Tensor p = variable("p");
  const Tensor q = variable("q");
  const Tensor keep = variable("keep");
  b.prog.add(Copy(x, p));
  b.prog.add(Copy(y, q));
  Sequence body;
  body.add(Copy(p, keep));
  body.add(Copy(q, p));
  body.add(Copy(keep, q));
  b.prog.add(Repeat(3, body));
  b.output(p);
  b.output(q);
  const auto a = filled(1);
  const auto c = filled(2);
  auto first = filled(0);
  auto second = filled(0);
  run(b.build(), {a.data(), c.data()}, {first.data(), second.data()});
  CHECK_EQ(first[0], 2.0f);
  CHECK_EQ(second[0], 1.0f);
}

TEST(both_branches_may_write_the_result) {
  Built b;
  const Tensor x = b.input("x");
  const Tensor zero = b.graph.addConstant<float>(FLOAT, {}, 0.0f);
  const Tensor out = b.graph.addVariable(FLOAT, {kN}, VariableMappingMethod::LINEAR, "out");
  const Tensor positive = popops::gt(b.graph, x[0], zero, b.prog);
  Sequence yes;
  yes.add(Copy(popops::add(b.graph, x, x, yes), out));
  Sequence no;
  const Tensor square = popops::mul(b.graph, x, x, no);
  no.add(Copy(popops::add(b.graph, square, square, no), out));
  b.prog.add(If(positive, yes, no));
  b.output(out);
  const auto image = b.build();
  for (const float value : {3.0f, -3.0f}) {
    const auto in = filled(value);
    auto got = filled(0);
    run(image, {in.data()}, {got.data()});
    CHECK_EQ(got[9], value > 0 ? 6.0f : 18.0f);
  }
}

TEST(memory_is_shared_by_values_that_do_not_live_together) {
  Built b;
  Tensor t = b.input("x");
  for (int i = 0; i < 20; ++i) {
    const Tensor sum = popops::add(b.graph, t, t, b.prog);
    t = popops::mul(b.graph, sum, t, b.prog);
  }
  b.output(t);
  const auto image = b.build();
  CHECK(image->arena_bytes <= 3 * 4 * 1024);
  CHECK(image->memory.peak_live_bytes >= 4 * 4 * kN);
  CHECK(image->memory.worst_tile_bytes < image->memory.tile_capacity);
}

TEST(a_variable_that_is_only_read_stays) {
  Built b;
  const Tensor x = b.input("x");
  const Tensor kept = b.graph.addVariable(FLOAT, {kN}, VariableMappingMethod::LINEAR, "kept");
  const Tensor made = b.graph.addVariable(FLOAT, {kN}, VariableMappingMethod::LINEAR, "made");
  b.prog.add(Copy(x, made));
  b.output(popops::add(b.graph, popops::add(b.graph, kept, made, b.prog), x, b.prog));
  CHECK_EQ(b.build()->memory.always_live_bytes, 3 * 4 * kN);  // x, kept, the result
}

TEST(a_function_has_its_code_once) {
  const auto account = [](unsigned calls) {
    Built b;
    const Tensor x = b.input("x");
    Sequence body;
    body.add(Copy(popops::mul(b.graph, popops::add(b.graph, x, x, body), x, body), x));
    const Function function = b.graph.addFunction(body);
    for (unsigned i = 0; i < calls; ++i) b.prog.add(Call(function));
    b.output(x);
    const auto image = b.build();
    return std::make_pair(image->memory.code_bytes, image->cost().cycles());
  };
  const auto [code, cycles] = account(3);
  const auto [more_code, more_cycles] = account(6);
  CHECK(code > 0);
  CHECK_EQ(more_code, code);
  CHECK(more_cycles > 1.5 * cycles);
}

TEST(code_must_lie_where_a_tile_can_run_it) {
  const auto report = [](unsigned exchanges) {
    Built b;
    const Tensor x = b.input("x");
    Tensor y = b.graph.clone(x);
    b.graph.setTileMapping(y, 1000);
    for (unsigned i = 0; i < exchanges; ++i) {
      const auto part = [&](const Tensor& t) { return t.slice(i % 500, kN - i % 400); };
      b.prog.add(i % 2 == 0 ? Copy(part(x), part(y)) : Copy(part(y), part(x)));
    }
    b.output(x);
    const auto image = b.build();
    CHECK(image->memory.worst_tile_bytes < image->memory.tile_capacity);
    CHECK_EQ(image->memory.codeFits(), image->memory.code_bytes <= 212992u);
    return engine::outOfMemoryReport(*image);
  };
  CHECK_EQ(report(100), "");
  CHECK(report(4000).find("bytes of code on a tile; a tile can run code in 212992 bytes") !=
        std::string::npos);
}

TEST(sums_of_amp_vertices_lie_in_interleaved_memory) {
  // On one tile A, B and C have 485 kB, and C 451 kB: more than is interleaved, 426 kB.
  const auto worst = [](const char* vertex, std::size_t columns) {
    Graph graph{Target::createIPUTarget(1, 1, "ipu2")};
    Sequence prog;
    const auto variable = [&](const char* name, std::size_t rows, std::size_t n) {
      const Tensor t = graph.addVariable(FLOAT, {rows, n}, name);
      graph.setTileMapping(t, 0);
      return t;
    };
    const Tensor a = variable("a", 256, 16), b = variable("b", 16, columns);
    poplin::matMul(graph, a, b, prog, FLOAT, "product",
                   {{"planConstraints", std::string(R"({"method": ")") + vertex +
                                            R"(", "0": {"partition": {"outChanSplit": {"serial": 1},
                                               "inChanSplit": {"serial": 1}}}})"},
                    {"availableMemoryProportion", "1"}});
    engine::BuildOptions options;
    return engine::buildImage(graph, prog, options)->memory.worst_tile_bytes;
  };
  CHECK(worst("AMP", 440) > 638976u);
  CHECK(worst("HMAC", 440) < 638976u);
  CHECK(worst("AMP", 400) < 638976u);
}

TEST(the_account_multiplies_counted_loops) {
  const auto cycles = [](unsigned count) {
    Built b;
    const Tensor x = b.input("x");
    const Tensor c = b.graph.addVariable(FLOAT, {kN}, VariableMappingMethod::LINEAR, "c");
    b.prog.add(Copy(x, c));
    Sequence body;
    body.add(Copy(popops::add(b.graph, c, x, body), c));
    b.prog.add(Repeat(count, body));
    b.output(c);
    return b.build()->cost().cycles();
  };
  CHECK(cycles(10) > 0);
  CHECK_NEAR(cycles(30) - cycles(20), cycles(20) - cycles(10), 1e-6);
}

TEST(fifos_exchange_memory_and_change_no_result) {
  // 1, 2, ... 7 go through a FIFO of two values; afterwards the newest one is needed or not.
  for (const bool stays : {false, true}) {
    double cycles = 0;
    for (const std::string without : {"", "turns"}) {
      Built b;
      b.options.options.set("engine_without", without);
      const Tensor one = b.input("x");
      const auto variable = [&](const Type& type, std::vector<std::size_t> shape) {
        return b.graph.addVariable(type, shape, VariableMappingMethod::LINEAR, "variable");
      };
      const Tensor count = variable(FLOAT, {1, 2 * kN}), out = variable(FLOAT, {kN});
      const Tensor fifo = variable(FLOAT, {2, 2 * kN}), place = variable(UNSIGNED_INT, {1});
      popops::zero(b.graph, count, b.prog);
      popops::zero(b.graph, place, b.prog);
      Sequence body;
      popops::addInPlace(b.graph, count, concat(one, one).expand({0}), body);
      const Tensor newest = popops::square(b.graph, count, body);
      const Tensor oldest = popops::dynamicSlice(b.graph, fifo, place, {0}, {1}, body);
      popops::dynamicUpdate(b.graph, fifo, newest, place, {0}, {1}, body);
      const Tensor sum = popops::add(b.graph, oldest, stays ? newest : oldest, body);
      body.add(Copy(sum.flatten().slice(0, kN), out));
      const Tensor used = b.graph.addConstant(UNSIGNED_INT, {1}, 1u);
      b.graph.setTileMapping(used, 0);
      body.add(Copy(popops::sub(b.graph, used, place, body), place));
      b.prog.add(Repeat(7, body));
      b.output(out);
      const auto image = b.build();
      const auto turn = std::ranges::find(image->steps, "engine.turn", &engine::StepDesc::kernel);
      CHECK_EQ(turn != image->steps.end(), without.empty());
      if (without.empty()) CHECK_EQ(turn->operands[1].access == engine::Access::kRead, stays);
      const auto in = filled(1);
      engine::Session session(image, std::make_shared<engine::DeviceMemory>());
      for (int runs = 0; runs < 2; ++runs) {
        auto got = filled(0);
        std::vector<const void*> inputs = {in.data()};
        std::vector<void*> outputs = {got.data()};
        session.run(inputs, outputs);
        CHECK(got == filled(stays ? 25 + 49 : 25 + 25));
      }
      CHECK(without.empty() || image->cost().cycles() == cycles);
      cycles = image->cost().cycles();
    }
  }
}
