#include <cmath>

#include "Check.hpp"
#include "FloatProgram.hpp"
#include "popnn/internal/StepLoop.hpp"
#include "popops/ElementWise.hpp"
#include "popops/internal/Map.hpp"

using namespace poplar;
using popnn::internal::kMostStepsPerTurn;
using popnn::internal::runSteps;
using popnn::internal::stepsPerTurn;
using popnn::internal::StepTensors;
namespace pe = popops::expr;

namespace {

constexpr std::size_t kBatch = 3, kSize = 5, kRow = kBatch * kSize;

/// For states a and b and input x: a' = a / 2 + b x, which is also the output, and b' = b - x.
struct Steps {
  std::vector<std::vector<float>> outputs;  ///< of all steps; the last a; the last b
};

Steps onHost(std::size_t steps, bool reverse, const std::vector<float>& x, std::vector<float> a,
             std::vector<float> b) {
  std::vector<float> all(steps * kRow);
  for (std::size_t i = 0; i < steps; ++i) {
    const std::size_t t = reverse ? steps - 1 - i : i;
    for (std::size_t j = 0; j < kRow; ++j) {
      const float given = x[t * kRow + j];
      all[t * kRow + j] = a[j] = a[j] / 2 + b[j] * given;
      b[j] -= given;
    }
  }
  return {{all, a, b}};
}

/// `in_place`: the output is copied from the state, which is updated in place. `placed`: a turn's
/// steps are on other tiles than the sequences.
Steps inTurns(std::size_t steps, bool reverse, bool in_place, bool placed,
              const std::vector<std::vector<float>>& values) {
  check::FloatProgram p;
  const popnn::rnn::RnnParams params(FLOAT, kBatch, steps, {kSize, kSize});
  const Tensor x = p.input({steps, kBatch, kSize}), a = p.input({kBatch, kSize}),
               b = p.input({kBatch, kSize});
  const Tensor y = popnn::rnn::createOutputTensor(p.graph, params, 1);
  Tensor place;
  std::size_t found_there = 0;
  if (placed) {
    place = p.graph.addVariable(FLOAT, {kBatch, kSize});
    for (std::size_t i = 0; i < kBatch; ++i)  // batches in opposite order
      p.graph.setTileMapping(place[i], static_cast<unsigned>(kBatch - i));
  }
  const auto body = [&](program::Sequence& loop, std::vector<Tensor>& state,
                        const StepTensors& step) {
    if (placed)
      found_there += p.graph.getTileMapping(step.inputs[0]) == p.graph.getTileMapping(place);
    const Tensor before = state[0];
    if (!in_place) state[0] = step.outputs[0];
    popops::internal::mapWithOutputs(
        p.graph, {pe::Any(pe::_1 * pe::Const(0.5f) + pe::_2 * pe::_3), pe::Any(pe::_2 - pe::_3)},
        {before, state[1], step.inputs[0]}, {state[0], state[1]}, loop);
    if (in_place) loop.add(program::Copy(state[0], step.outputs[0]));
  };
  const auto last = runSteps(p.graph, steps, reverse, {a, b}, {{x}, {y}}, place, p.prog, body, {});
  CHECK_EQ(found_there, placed && steps / stepsPerTurn(steps) > 1 ? stepsPerTurn(steps) : 0);
  for (const Tensor& t : {y, last[0], last[1]}) p.output(t);
  return {check::run(p.build(), values)};
}

}  // namespace

TEST(turns_divide_the_steps_where_they_can) {
  CHECK_EQ(stepsPerTurn(128), std::size_t{16});
  CHECK_EQ(stepsPerTurn(50), std::size_t{10});
  CHECK_EQ(stepsPerTurn(37), kMostStepsPerTurn);
}

TEST(steps_in_turns_are_those_of_a_loop) {
  for (const std::size_t steps : {1, 2, 16, 17, 32, 37, 50})
    for (const bool reverse : {false, true})
      for (const unsigned how : {0u, 1u, 2u, 3u}) {
        const bool in_place = (how & 1) != 0, placed = (how & 2) != 0;
        const std::vector<std::vector<float>> values{
            check::numbers(steps * kRow, 1), check::numbers(kRow, 2), check::numbers(kRow, 3)};
        const Steps wanted = onHost(steps, reverse, values[0], values[1], values[2]);
        const Steps found = inTurns(steps, reverse, in_place, placed, values);
        for (std::size_t k = 0; k < 3; ++k)
          for (std::size_t i = 0; i < wanted.outputs[k].size(); ++i)
            CHECK_NEAR(found.outputs[k][i], wanted.outputs[k][i],
                       1e-5 * (1 + std::abs(wanted.outputs[k][i])));
      }
}

TEST(steps_of_a_sequence_take_turns_in_memory_and_need_no_copy) {
  check::FloatProgram p;
  const Tensor whole = p.graph.addVariable(FLOAT, {kBatch, kSize, 2});
  p.graph.setTileMapping(whole, 0);
  const Tensor even = whole.slice(0, 1, 2), odd = whole.slice(1, 2, 2);
  const auto children = [&](const Tensor& from, const Tensor& to) {
    program::Sequence prog;
    popops::mapWithOutput(p.graph, pe::_1 + pe::Const(1.0f), {from}, to, prog);
    const ipujax::engine::ProgramNode& node = prog;
    return node.children.size();
  };
  CHECK_EQ(children(even, odd), std::size_t{1});
  const Tensor flat = whole.flatten();  // here elements are read after they were written
  CHECK_EQ(children(flat.slice(0, 20), flat.slice(1, 21)), std::size_t{2});
}
