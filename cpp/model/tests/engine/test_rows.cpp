#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "Check.hpp"
#include "FloatProgram.hpp"
#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Reduce.hpp"

/// Neighbouring steps that work row by row, run a few rows at a time, against the same steps one
/// after the other: each in a loop of one turn of its own.
using namespace poplar;
using namespace poplar::program;
using check::FloatProgram;
using check::numbers;
using check::run;
using check::Shape;
namespace engine = ipujax::engine;
namespace pe = popops::expr;

namespace {

/// A program whose steps stay separate if `apart` is set.
struct RowProgram : FloatProgram {
  bool apart = false;

  /// An input that steps may write: the caller's own memory is only read.
  Tensor variable(const Shape& shape) {
    const Tensor from = input(shape);
    const Tensor to = graph.clone(from);
    prog.add(Copy(from, to));
    return to;
  }
  template <class F>
  auto step(const F& make) {
    Sequence sequence;
    auto result = make(sequence);
    add(sequence);
    return result;
  }
  void add(const Sequence& sequence) { apart ? prog.add(Repeat(1, sequence)) : prog.add(sequence); }
  Tensor map(const pe::Expr& expression, const std::vector<Tensor>& operands) {
    return step([&](Sequence& s) { return popops::map(graph, expression, operands, s); });
  }
  Tensor reduce(const Tensor& x, std::size_t dim, popops::Operation op) {
    return step([&](Sequence& s) { return popops::reduce(graph, x, {dim}, op, s); });
  }
};

std::ptrdiff_t count(const engine::Image& image, const char* kernel) {
  return std::count_if(image.steps.begin(), image.steps.end(),
                       [&](const auto& step) { return step.kernel == kernel; });
}

using Results = std::vector<std::vector<float>>;
using Make = std::function<void(RowProgram&)>;

/// Returns the program's results. Checks that they and its cycles equal those of its steps run
/// separately, bit for bit.
Results compare(const Make& make, const Results& inputs, std::ptrdiff_t rows_steps) {
  std::vector<Results> results;
  std::vector<double> cycles;
  for (const bool apart : {false, true}) {
    RowProgram program;
    program.apart = apart;
    make(program);
    const auto image = program.build();
    if (apart || rows_steps >= 0) CHECK_EQ(count(*image, "engine.rows"), apart ? 0 : rows_steps);
    cycles.push_back(image->cost().compute_cycles);
    results.push_back(run(image, inputs));
    const std::string sealed = image->serialise();
    const auto loaded = engine::Image::deserialise(std::as_bytes(std::span(sealed)));
    CHECK(run(loaded, inputs) == results.back());
  }
  CHECK_EQ(cycles[0], cycles[1]);
  for (std::size_t o = 0; o < results[0].size(); ++o) {
    CHECK_EQ(results[0][o].size(), results[1][o].size());
    const auto bytes = results[0][o].size() * sizeof(float);
    CHECK_EQ(std::memcmp(results[0][o].data(), results[1][o].data(), bytes), 0);
  }
  return results[0];
}

/// softmax over the last dimension.
Tensor softmax(RowProgram& p, const Tensor& x) {
  const std::size_t last = x.rank() - 1;
  const Tensor most = p.reduce(x, last, popops::Operation::MAX).expand({last});
  const Tensor e = p.map(pe::Exp(pe::Sub(pe::_1, pe::_2)), {x, most});
  const Tensor sum = p.reduce(e, last, popops::Operation::ADD).expand({last});
  return p.map(pe::Divide(pe::_1, pe::_2), {e, sum});
}

}  // namespace

TEST(a_softmax_is_one_step) {
  for (const Shape& shape :
       {Shape{1000, 77}, Shape{7, 9, 300}, Shape{20, 5000}, Shape{16, 1, 513}}) {
    const auto make = [&](RowProgram& p) { p.output(softmax(p, p.input(shape))); };
    const auto results = compare(make, {numbers(check::product(shape), 1)}, 1);
    const std::size_t columns = shape.back();
    for (std::size_t row = 0; row * columns < results[0].size(); ++row) {
      double sum = 0;
      for (std::size_t c = 0; c < columns; ++c) sum += results[0][row * columns + c];
      CHECK_NEAR(sum, 1, 1e-5);
    }
  }
}

TEST(a_function_that_is_called_several_times_has_one_step) {
  const auto make = [](RowProgram& p) {
    const Tensor x = p.variable({1000, 77});
    const Sequence outer = p.prog;
    p.prog = Sequence();
    const Tensor y = softmax(p, x);
    p.prog.add(Copy(y, x));
    const Function function = p.graph.addFunction(p.prog);
    p.prog = outer;
    for (int i = 0; i < 3; ++i) p.prog.add(Call(function));
    p.output(x);
  };
  compare(make, {numbers(77000, 7)}, 1);
}

TEST(what_only_the_rows_use_takes_no_memory) {
  RowProgram program;
  program.output(softmax(program, program.input({1000, 1000})));
  const auto image = program.build();
  CHECK_EQ(count(*image, "engine.rows"), 1);
  CHECK(image->arena_bytes < 1000);
}

TEST(halves_stay_halves) {
  const auto make = [](RowProgram& p) {
    const Tensor x = p.input({300, 200});
    const Tensor half = p.step([&](Sequence& s) { return popops::cast(p.graph, x, HALF, s); });
    const Tensor y = softmax(p, half);
    p.output(p.step([&](Sequence& s) { return popops::cast(p.graph, y, FLOAT, s); }));
  };
  compare(make, {numbers(60000, 2)}, 1);
}

TEST(other_rows_of_what_is_written_are_not_read_too_early) {
  // y = x + 1 in place of x; then the sum of y's rows reversed, and of y's rows each.
  const auto make = [](RowProgram& p) {
    const Tensor x = p.variable({200, 100});
    p.step([&](Sequence& s) {
      popops::mapInPlace(p.graph, pe::Add(pe::_1, pe::Const(1.0f)), {x}, s);
      return 0;
    });
    const Tensor mirrored = p.map(pe::Mul(pe::_1, pe::_2), {x, x.reverse(0)});
    p.output(p.reduce(mirrored, 1, popops::Operation::ADD));
    p.output(p.reduce(x, 1, popops::Operation::ADD));
  };
  compare(make, {numbers(20000, 3)}, -1);
}

TEST(a_single_row_read_by_all_is_whole_first) {
  const auto make = [](RowProgram& p) {
    const Tensor x = p.input({200, 100});
    const Tensor y = p.map(pe::Mul(pe::_1, pe::Const(2.0f)), {x});
    const Tensor first = y.slice(150, 151, 0);
    p.output(p.reduce(p.map(pe::Add(pe::_1, pe::_2), {y, first}), 1, popops::Operation::MAX));
  };
  compare(make, {numbers(20000, 4)}, -1);
}

TEST(memory_of_what_is_read_first_is_not_taken_by_what_is_written_last) {
  const auto make = [](RowProgram& p) {
    const Tensor x = p.input({4000, 100});
    // This step does not work by these rows, so it is not in their group.
    const Tensor first =
        p.map(pe::Mul(pe::_1, pe::Const(2.0f)), {x.reshape({2000, 200})}).reshape({4000, 100});
    const Tensor least = p.reduce(x, 1, popops::Operation::MIN).expand({1});
    const Tensor most = p.reduce(first.reverse(0), 1, popops::Operation::MAX).expand({1});
    const Tensor last = p.map(pe::Add(pe::_1, pe::Mul(pe::_2, pe::_3)), {x, least, most});
    p.output(p.map(pe::Add(pe::_1, pe::Const(1.0f)), {last.reverse(0)}));
  };
  compare(make, {numbers(400000, 6)}, 1);
}

TEST(rows_within_loops) {
  RowProgram program;
  const Tensor x = program.variable({128, 100});
  RowProgram& p = program;
  Sequence body;
  const Tensor sum = popops::reduce(p.graph, x, {1}, popops::Operation::ADD, body);
  const Tensor next = popops::map(p.graph, pe::Sub(pe::_1, pe::Mul(pe::_2, pe::Const(0.005f))),
                                  {x, sum.expand({1})}, body);
  body.add(Copy(next, x));
  p.prog.add(Repeat(3, body));
  p.output(x);
  const auto image = p.build();
  CHECK_EQ(count(*image, "engine.rows"), 1);
  const auto values = numbers(12800, 5);
  const auto out = run(image, {values})[0];
  for (std::size_t r = 0; r < 128; ++r) {
    double total = 0;
    for (std::size_t c = 0; c < 100; ++c) total += values[r * 100 + c];
    const double taken = 0.005 * total * (1 + 0.5 + 0.25);  // each turn halves the row's sum
    for (std::size_t c = 0; c < 100; ++c)
      CHECK_NEAR(out[r * 100 + c], values[r * 100 + c] - taken, 1e-4);
  }
}

TEST(small_or_unrelated_steps_stay_apart) {
  RowProgram p;
  const Tensor x = p.input({20, 20});
  p.output(softmax(p, x));
  const Tensor y = p.input({100, 100});
  const Tensor z = p.input({100, 100});
  p.output(p.map(pe::Exp(pe::_1), {z}));
  p.output(p.reduce(y, 1, popops::Operation::MAX));
  CHECK_EQ(count(*p.build(), "engine.rows"), 0);
}

namespace {

/// Random steps on matrices of one shape and on vectors with one number per row or per column. All
/// numbers are small integers, so that results do not depend on the order of sums.
// Long: a case for each kind of step.
void makeRandom(RowProgram& p, unsigned seed, std::size_t rows, std::size_t columns) {
  std::mt19937 random(seed);
  std::vector<Tensor> matrices{p.variable({rows, columns}), p.variable({rows, columns})};
  std::vector<Tensor> by_row{p.variable({rows})};
  std::vector<Tensor> by_column{p.variable({columns})};
  const auto pick = [&](const std::vector<Tensor>& from) { return from[random() % from.size()]; };
  const auto some = [&]() -> Tensor {
    switch (random() % 8) {
      case 0:
        return pick(matrices).reverse(0);
      case 1:
        return pick(matrices).reverse(1);
      case 2:
        return pick(matrices).slice(columns / 2, columns / 2 + 1, 1);
      case 3:
        return pick(matrices).slice(rows / 2, rows / 2 + 1, 0);
      case 4:
        return pick(by_row).expand({1});
      case 5:
        return pick(by_column).expand({0});
      default:
        return pick(matrices);
    }
  };
  const auto small = [](const pe::Expr& e) {
    return pe::Clamp(e, pe::Const(-8.0f), pe::Const(8.0f));
  };
  const int steps = 4 + static_cast<int>(random() % 12);
  for (int i = 0; i < steps; ++i) {
    const auto sum = small(pe::Sub(pe::Add(pe::_1, pe::_2), pe::Const(1.0f)));
    const auto op = random() % 2 ? popops::Operation::ADD : popops::Operation::MAX;
    switch (random() % 8) {
      case 0: {
        const Tensor scale = pick(by_row).slice(rows / 3, rows / 3 + 1).reshape({});
        const Tensor x = pick(matrices);
        const Tensor sums = p.step([&](Sequence& s) {
          return popops::reduce(p.graph, x, {1}, {popops::Operation::ADD, false, scale}, s);
        });
        by_row.push_back(p.map(small(pe::_1), {sums}));
        break;
      }
      case 1:
      case 7:
        matrices.push_back(p.map(sum, {pick(matrices), some()}));
        break;
      case 2:
        by_row.push_back(p.map(small(pe::_1), {p.reduce(pick(matrices), 1, op)}));
        break;
      case 3:
        by_row.push_back(p.reduce(p.map(sum, {pick(matrices), some()}), 1, popops::Operation::MIN));
        break;
      case 4: {
        const Tensor into = pick(matrices);
        const Tensor from = some();
        p.step([&](Sequence& s) {
          popops::mapInPlace(p.graph, sum, {into, from}, s);
          return 0;
        });
        break;
      }
      case 5:
        by_row.push_back(p.map(sum, {pick(by_row), pick(by_row)}));
        break;
      default:
        by_column.push_back(p.map(small(pe::_1), {p.reduce(pick(matrices), 0, op)}));
    }
  }
  for (const auto* values : {&matrices, &by_row, &by_column})
    for (const Tensor& value : *values)
      if (random() % 2) p.output(value);
  p.output(matrices.back());
}

}  // namespace

TEST(random_programs_compute_what_their_steps_do) {
  std::ptrdiff_t fused = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const std::size_t rows = 8 + random() % 300;
    const std::size_t columns = 9000 / rows + 1 + random() % 200;
    Results inputs;
    for (const std::size_t n : {rows * columns, rows * columns, rows, columns}) {
      inputs.emplace_back(n);
      for (float& v : inputs.back()) v = static_cast<float>(static_cast<int>(random() % 17) - 8);
    }
    const auto make = [&](RowProgram& p) { makeRandom(p, seed, rows, columns); };
    RowProgram program;
    make(program);
    fused += count(*program.build(), "engine.rows");
    compare(make, inputs, -1);
  }
  CHECK(fused > 200);
}
