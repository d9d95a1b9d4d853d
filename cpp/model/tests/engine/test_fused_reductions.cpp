#include <algorithm>
#include <cmath>

#include "Check.hpp"
#include "FloatProgram.hpp"
#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Reduce.hpp"

using namespace poplar;
using namespace poplar::program;
using check::FloatProgram;
using check::numbers;
using check::product;
using check::run;
using check::Shape;
namespace engine = ipujax::engine;
namespace pe = popops::expr;

namespace {

std::ptrdiff_t fused(const engine::Image& image) {
  return std::count_if(image.steps.begin(), image.steps.end(), [](const auto& step) {
    return step.kernel == "engine.reduce_mapped" || step.kernel == "engine.rows";
  });
}

/// y = reduction over dims of |x * b + 0.25|, b of b_shape: as one step, and as two, the first in a
/// loop of one turn. Not a bit may differ.
void compare(const Shape& shape, const Shape& b_shape, const Shape& dims, popops::Operation op) {
  const auto x = numbers(product(shape), 1);
  const auto b = numbers(product(b_shape), 2);
  std::vector<std::vector<float>> results;
  std::vector<double> cycles;
  for (const bool apart : {false, true}) {
    FloatProgram built;
    const Tensor tx = built.input(shape);
    Tensor tb = built.input(b_shape);
    const auto expression = pe::Abs(pe::Add(pe::Mul(pe::_1, pe::_2), pe::Const(0.25f)));
    Sequence map;
    const Tensor mapped = popops::map(built.graph, expression, {tx, tb}, map);
    apart ? built.prog.add(Repeat(1, map)) : built.prog.add(map);
    const Tensor y = popops::reduce(built.graph, mapped, dims, op, built.prog);
    built.output(y);
    const auto image = built.build();
    CHECK_EQ(fused(*image), apart ? 0 : 1);
    cycles.push_back(image->cost().compute_cycles);
    results.push_back(run(image, {x, b})[0]);
  }
  CHECK_EQ(cycles[0], cycles[1]);  // the account is that of the two steps
  CHECK(results[0] == results[1]);
}

}  // namespace

TEST(results_are_those_of_two_steps) {
  using popops::Operation;
  const Shape shapes[] = {{100, 90},    {9, 20, 64}, {3, 50001},  {200, 3000}, {8192},
                          {1, 9000, 1}, {3000, 90},  {700, 1030}, {2, 300000}};
  for (const Shape& shape : shapes) {
    const std::size_t rank = shape.size();
    std::vector<Shape> all_dims{{rank - 1}};
    if (rank > 1) all_dims.push_back({0});
    if (rank > 2) all_dims.insert(all_dims.end(), {{0, 1}, {1, 2}, {2, 0, 1}});
    Shape row(rank, 1);
    row[rank - 1] = shape[rank - 1];
    Shape column = shape;
    column[rank - 1] = 1;
    for (const Shape& dims : all_dims) {
      std::size_t columns = 1;  // of what is reduced or kept at the end
      const bool ends = std::count(dims.begin(), dims.end(), rank - 1) > 0;
      for (std::size_t d = ends ? rank - dims.size() : dims.size(); d < rank; ++d)
        columns *= shape[d];
      const auto is_one = [&](std::size_t d) { return shape[d] == 1; };
      const bool is_copy = std::all_of(dims.begin(), dims.end(), is_one);
      if (columns < 64 || is_copy) continue;
      for (const Shape& b : {shape, Shape(rank, 1)}) {
        compare(shape, b, dims, Operation::ADD);
        compare(shape, b, dims, Operation::MAX);
        compare(shape, b, dims, Operation::SQUARE_ADD);
      }
      if (rank == 2) {
        compare(shape, row, dims, Operation::ADD);
        compare(shape, row, dims, Operation::MUL);
        compare(shape, row, dims, Operation::LOG_ADD);
        compare(shape, column, dims, Operation::MIN);
      }
    }
  }
}

TEST(halves_and_bools_are_reduced_as_they_are) {
  FloatProgram built;
  const Tensor x = built.input({90, 100});
  const Tensor half = popops::cast(built.graph, x, HALF, built.prog);
  const Tensor sum =
      popops::reduce(built.graph, half, HALF, {0}, popops::Operation::ADD, built.prog);
  built.output(popops::cast(built.graph, sum, FLOAT, built.prog));
  const auto image = built.build();
  CHECK_EQ(fused(*image), 1);
  const auto values = numbers(9000, 3);
  const auto out = run(image, {values})[0];
  for (std::size_t c = 0; c < 100; ++c) {
    double want = 0;
    for (std::size_t r = 0; r < 90; ++r) want += values[r * 100 + c];
    CHECK_NEAR(out[c], want, 0.06);
  }
}

TEST(what_changes_in_between_or_is_small_stays_two_steps) {
  const Shape shape{100, 100};
  {
    FloatProgram built;
    const Tensor x = built.input(shape);
    const Tensor squares = popops::square(built.graph, x, built.prog);
    built.prog.add(Copy(popops::add(built.graph, x, x, built.prog), x));
    const Tensor sum =
        popops::reduce(built.graph, squares, {1}, popops::Operation::ADD, built.prog);
    built.output(popops::add(built.graph, sum, x.slice(0, 1, 1).flatten(), built.prog));
    const auto image = built.build();
    CHECK_EQ(fused(*image), 0);
    const auto out = run(image, {std::vector<float>(10000, 3)})[0];
    CHECK_EQ(out[7], 906.0f);
  }
  {
    FloatProgram built;
    const Tensor x = built.input({10, 10});
    const Tensor squares = popops::square(built.graph, x, built.prog);
    built.output(popops::reduce(built.graph, squares, {1}, popops::Operation::ADD, built.prog));
    CHECK_EQ(fused(*built.build()), 0);
  }
}

TEST(within_loops_inputs_live_until_they_are_reduced) {
  // Each turn: s += sum(x * x), then a later step of the turn changes x.
  FloatProgram built;
  const Tensor x = built.input({100, 100});
  const Tensor total = built.input({100});
  Sequence body;
  const Tensor twice = popops::add(built.graph, x, x, body);
  const Tensor squares = popops::square(built.graph, twice, body);
  const Tensor other = popops::mul(built.graph, x, x, body);
  const Tensor sum = popops::reduce(built.graph, squares, {0}, popops::Operation::ADD, body);
  body.add(Copy(popops::add(built.graph, total, sum, body), total));
  body.add(Copy(popops::sub(built.graph, x, other, body), x));
  built.prog.add(Repeat(3, body));
  built.output(total);
  const auto image = built.build();
  CHECK_EQ(fused(*image), 1);
  const auto out = run(image, {std::vector<float>(10000, 0.5f), std::vector<float>(100, 0)})[0];
  float v = 0.5f, want = 0;
  for (int turn = 0; turn < 3; ++turn) {
    want += 100 * (2 * v) * (2 * v);
    v -= v * v;
  }
  CHECK_NEAR(out[50], want, 1e-3);
}
