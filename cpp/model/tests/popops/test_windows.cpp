// Gather and scatter kernels on random canonical problems, against plain loops.
#include <algorithm>
#include <functional>
#include <numeric>

#include "Check.hpp"
#include "StepRunner.hpp"
#include "engine/expr/ExprProgram.hpp"

using namespace step_runner;
namespace expr = ipujax::engine::expr;

namespace {

/// A random problem: a batch of windows of a large array.
struct Problem {
  Shape large, batch, window_dims, map, batching, sizes;
  bool clamp;

  explicit Problem(std::mt19937& g, bool clamp_starts) : clamp(clamp_starts) {
    const auto pick = [&](int lo, int hi) { return lo + static_cast<int>(g() % (hi - lo + 1)); };
    const int rank = pick(1, 4);
    for (int d = 0; d < rank; ++d) large.push_back(pick(1, 6));
    for (int b = pick(0, 2); b > 0; --b) batch.push_back(pick(0, 12) == 0 ? 0 : pick(1, 5));
    sizes = large;
    batching.assign(batch.size(), -1);
    std::vector<std::int64_t> dims(rank);
    std::iota(dims.begin(), dims.end(), 0);
    std::shuffle(dims.begin(), dims.end(), g);
    std::vector<bool> dropped(rank, false);
    for (auto d : dims) {
      for (std::size_t b = 0; b < batch.size() && !dropped[d]; ++b) {
        if (batching[b] < 0 && batch[b] > 0 && pick(0, 4) == 0) {
          batching[b] = d;
          large[d] = batch[b];
          sizes[d] = 1;
          dropped[d] = true;
        }
      }
      if (dropped[d]) continue;
      sizes[d] = pick(1, static_cast<int>(large[d]));
      if (pick(0, 2) > 0) map.push_back(d);
      if (sizes[d] == 1 && pick(0, 1)) dropped[d] = true;
    }
    for (int d = 0; d < rank; ++d) {
      if (!dropped[d]) window_dims.push_back(d);
    }
  }

  Shape smallShape() const {
    Shape shape = batch;
    for (auto d : window_dims) shape.push_back(sizes[d]);
    return shape;
  }
  Shape indexShape() const {
    Shape shape = batch;
    shape.push_back(static_cast<std::int64_t>(map.size()));
    return shape;
  }
  void attributes(StepDesc& step) const {
    step.attributes.set("window", window_dims);
    step.attributes.set("map", map);
    step.attributes.set("batching", batching);
    step.attributes.set("sizes", sizes);
    step.attributes.set("clamp", std::int64_t{clamp});
  }
  /// fn(index into large, index into small), windows in order; skips what is outside.
  template <class I>
  void walk(Array<I>& indices, const std::function<void(const Shape&, const Shape&)>& fn) const {
    each(batch, [&](const Shape& b) {
      Shape start(large.size(), 0);
      for (std::size_t k = 0; k < map.size(); ++k) {
        Shape at = b;
        at.push_back(static_cast<std::int64_t>(k));
        const std::int64_t limit = large[map[k]] - sizes[map[k]];
        std::int64_t s = static_cast<std::int64_t>(indices.at(at));
        if (clamp) s = std::min(std::max<std::int64_t>(s, 0), limit);
        if (s < 0 || s > limit) return;
        start[map[k]] = s;
      }
      for (std::size_t i = 0; i < batch.size(); ++i) {
        if (batching[i] >= 0) start[batching[i]] = b[i];
      }
      Shape window;
      for (auto d : window_dims) window.push_back(sizes[d]);
      each(window, [&](const Shape& w) {
        Shape from = start;
        Shape to = b;
        for (std::size_t i = 0; i < w.size(); ++i) {
          from[window_dims[i]] += w[i];
          to.push_back(w[i]);
        }
        fn(from, to);
      });
    });
  }
};

template <class T>
void fillRandom(Array<T>& array, std::mt19937& g, int lo, int hi) {
  for (auto& x : array.memory) x = static_cast<T>(lo + static_cast<int>(g() % (hi - lo + 1)));
}

template <class T, class I>
void gatherCase(ElementType type, ElementType index_type, std::mt19937& g) {
  const Problem p(g, true);
  Array<T> large(type, Access::kRead, p.large, &g);
  Array<I> indices(index_type, Access::kRead, p.indexShape(), &g);
  Array<T> out(type, Access::kWrite, p.smallShape(), &g);
  fillRandom(large, g, 0, 100);
  fillRandom(indices, g, std::is_signed_v<I> ? -3 : 0, 8);
  Array<T> expected = out;
  p.walk<I>(indices, [&](const Shape& from, const Shape& to) { expected.at(to) = large.at(from); });
  StepDesc step;
  step.kernel = "popx.gather";
  step.operands = {large.desc, indices.desc, out.desc};
  p.attributes(step);
  run(step, {large.pointer(), indices.pointer(), out.pointer()});
  CHECK(out.memory == expected.memory);
}

using Body = std::function<double(double, double)>;

template <class T>
void scatterCase(ElementType type, const std::string& name, const Body& body, std::mt19937& g,
                 const expr::ExprProgram* program = nullptr) {
  const Problem p(g, g() % 4 == 0);
  Array<T> large(type, Access::kReadWrite, p.large, &g);
  Array<std::int32_t> indices(ElementType::kInt32, Access::kRead, p.indexShape(), &g);
  Array<T> updates(type, Access::kRead, p.smallShape(), &g);
  fillRandom(large, g, 0, 9);
  fillRandom(updates, g, 0, 9);
  fillRandom(indices, g, -2, 6);
  Array<T> expected = large;
  p.walk<std::int32_t>(indices, [&](const Shape& at, const Shape& from) {
    expected.at(at) = static_cast<T>(body(expected.at(at), updates.at(from)));
  });
  StepDesc step;
  step.kernel = "popx.scatter";
  step.operands = {large.desc, indices.desc, updates.desc};
  p.attributes(step);
  step.attributes.set("body", program ? std::string("expr") : name);
  step.attributes.set("unique", std::int64_t{0});
  if (program) step.attributes.set("expr", program->toIntegers());
  run(step, {large.pointer(), indices.pointer(), updates.pointer()});
  CHECK(large.memory == expected.memory);
}

}  // namespace

TEST(gather_random_problems) {
  std::mt19937 g(7);
  for (int i = 0; i < 500; ++i) {
    gatherCase<float, std::int32_t>(ElementType::kFloat, ElementType::kInt32, g);
    gatherCase<std::uint16_t, std::uint32_t>(ElementType::kHalf, ElementType::kUInt32, g);
    gatherCase<std::int8_t, std::int8_t>(ElementType::kInt8, ElementType::kInt8, g);
    gatherCase<std::uint64_t, std::int64_t>(ElementType::kUInt64, ElementType::kInt64, g);
    gatherCase<float, std::uint8_t>(ElementType::kFloat, ElementType::kUInt8, g);
  }
}

TEST(gather_huge_unsigned_index_is_clamped) {
  Array<float> table(ElementType::kFloat, Access::kRead, {4});
  Array<std::uint64_t> index(ElementType::kUInt64, Access::kRead, {1});
  Array<float> out(ElementType::kFloat, Access::kWrite, {});
  table.memory = {1, 2, 3, 4};
  index.memory = {~0ull};
  StepDesc step;
  step.kernel = "popx.gather";
  step.operands = {table.desc, index.desc, out.desc};
  step.attributes.set("window", Shape{}).set("map", Shape{0}).set("batching", Shape{});
  step.attributes.set("sizes", Shape{1}).set("clamp", std::int64_t{1});
  run(step, {table.pointer(), index.pointer(), out.pointer()});
  CHECK_EQ(out.memory[0], 4.0f);
}

/// Slices and updates, from any start, that wrap around to the start of a dimension.
TEST(one_window_that_wraps) {
  std::mt19937 g(5);
  for (int i = 0; i < 400; ++i) {
    const bool stores = i % 2 == 1;
    const auto rank = static_cast<std::int64_t>(1 + g() % 4);
    Shape large, sizes, dims;
    for (std::int64_t d = 0; d < rank; ++d) {
      large.push_back(1 + static_cast<std::int64_t>(g() % 6));
      const bool sliced = g() % 3 > 0;
      sizes.push_back(sliced ? 1 + static_cast<std::int64_t>(g()) % large.back() : large.back());
      if (sliced) dims.insert(dims.begin() + static_cast<std::int64_t>(g() % (dims.size() + 1)), d);
    }
    Array<float> whole(ElementType::kFloat, stores ? Access::kReadWrite : Access::kRead, large, &g);
    Array<std::int16_t> starts(ElementType::kInt16, Access::kRead,
                               {static_cast<std::int64_t>(dims.size())});
    Array<float> part(ElementType::kFloat, stores ? Access::kRead : Access::kWrite, sizes, &g);
    fillRandom(whole, g, 0, 100);
    fillRandom(part, g, 0, 100);
    fillRandom(starts, g, -9, 14);
    auto expected_whole = whole;
    auto expected_part = part;
    each(sizes, [&](const Shape& at) {
      Shape from = at;
      for (std::size_t k = 0; k < dims.size(); ++k) {
        auto& x = from[static_cast<std::size_t>(dims[k])];
        const auto extent = large[static_cast<std::size_t>(dims[k])];
        x = (x + starts.at({static_cast<std::int64_t>(k)}) + 60 * extent) % extent;
      }
      if (stores)
        expected_whole.at(from) = part.at(at);
      else
        expected_part.at(at) = whole.at(from);
    });
    StepDesc step;
    step.kernel = stores ? "popops.dynamic_update" : "popops.dynamic_slice";
    step.operands = {whole.desc, starts.desc, part.desc};
    Shape all(large.size());
    std::iota(all.begin(), all.end(), 0);
    step.attributes.set("window", all).set("map", dims).set("batching", Shape{});
    step.attributes.set("sizes", sizes).set("clamp", std::int64_t{2});
    if (stores) step.attributes.set("body", std::string("replace")).set("unique", std::int64_t{1});
    run(step, {whole.pointer(), starts.pointer(), part.pointer()});
    CHECK(whole.memory == expected_whole.memory);
    CHECK(part.memory == expected_part.memory);
  }
}

TEST(scatter_random_problems) {
  std::mt19937 g(11);
  const auto replace = [](double, double b) { return b; };
  const auto add = [](double a, double b) { return a + b; };
  const auto low = [](double a, double b) { return std::min(a, b); };
  const auto high = [](double a, double b) { return std::max(a, b); };
  for (int i = 0; i < 300; ++i) {
    scatterCase<float>(ElementType::kFloat, "replace", replace, g);
    scatterCase<float>(ElementType::kFloat, "add", add, g);
    scatterCase<std::int32_t>(ElementType::kInt32, "add", add, g);
    scatterCase<std::uint8_t>(ElementType::kUInt8, "add", add, g);
    scatterCase<std::int32_t>(
        ElementType::kInt32, "mul",
        [](double a, double b) {
          return static_cast<double>(
              static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int32_t>(a)) *
                                        static_cast<std::uint32_t>(static_cast<std::int32_t>(b))));
        },
        g);
    scatterCase<float>(ElementType::kFloat, "min", low, g);
    scatterCase<std::uint16_t>(ElementType::kUInt16, "max", high, g);
  }
}

TEST(scatter_expression_body) {
  std::mt19937 g(13);
  expr::ExprBuilder builder({ElementType::kFloat, ElementType::kFloat});
  const auto twice = builder.apply(expr::Op::kAdd, {builder.input(0), builder.input(0)});
  builder.output(builder.apply(expr::Op::kSubtract, {builder.input(1), twice}));
  const auto program = builder.build();
  for (int i = 0; i < 300; ++i) {
    scatterCase<float>(
        ElementType::kFloat, "", [](double a, double b) { return b - (a + a); }, g, &program);
  }
}

TEST(scatter_large_is_deterministic_and_exact) {
  std::mt19937 g(17);
  constexpr std::int64_t kRows = 300, kColumns = 16, kLookups = 20000;
  Array<float> table(ElementType::kFloat, Access::kReadWrite, {kRows, kColumns});
  Array<std::int32_t> indices(ElementType::kInt32, Access::kRead, {kLookups, 1});
  Array<float> updates(ElementType::kFloat, Access::kRead, {kLookups, kColumns});
  fillRandom(indices, g, -5, kRows + 5);
  for (auto& x : updates.memory) x = static_cast<float>(g() % 1000) * 1e-3f;
  std::vector<float> expected = table.memory;
  for (std::int64_t i = 0; i < kLookups; ++i) {
    const auto row = indices.memory[static_cast<std::size_t>(i)];
    if (row < 0 || row >= kRows) continue;
    for (std::int64_t c = 0; c < kColumns; ++c)
      expected[row * kColumns + c] += updates.memory[i * kColumns + c];
  }
  StepDesc step;
  step.kernel = "popx.scatter";
  step.operands = {table.desc, indices.desc, updates.desc};
  step.attributes.set("window", Shape{1}).set("map", Shape{0}).set("batching", Shape{-1});
  step.attributes.set("sizes", Shape{1, kColumns}).set("clamp", std::int64_t{0});
  step.attributes.set("body", std::string("add")).set("unique", std::int64_t{0});
  run(step, {table.pointer(), indices.pointer(), updates.pointer()});
  CHECK(table.memory == expected);
}

TEST(scatter_expression_of_many_duplicates_is_in_order) {
  std::mt19937 g(19);
  expr::ExprBuilder builder({ElementType::kFloat, ElementType::kFloat});
  const auto half = builder.constantFrom(ElementType::kFloat, 0.5);
  const auto scaled = builder.apply(expr::Op::kMultiply, {builder.input(0), half});
  builder.output(builder.apply(expr::Op::kAdd, {scaled, builder.input(1)}));
  const auto program = builder.build();
  for (const std::int64_t columns : {1, 3, 600}) {
    const std::int64_t rows = 200;
    const std::int64_t lookups = columns == 600 ? 300 : 30000;
    Array<float> table(ElementType::kFloat, Access::kReadWrite, {rows, columns});
    Array<std::int64_t> indices(ElementType::kInt64, Access::kRead, {lookups, 1});
    Array<float> updates(ElementType::kFloat, Access::kRead, {lookups, columns});
    fillRandom(indices, g, -2, rows + 2);
    fillRandom(updates, g, 0, 9);
    auto expected = table.memory;
    for (std::int64_t i = 0; i < lookups; ++i) {
      const auto row = indices.memory[static_cast<std::size_t>(i)];
      if (row < 0 || row >= rows) continue;
      for (std::int64_t c = 0; c < columns; ++c) {
        auto& x = expected[static_cast<std::size_t>(row * columns + c)];
        x = x * 0.5f + updates.memory[static_cast<std::size_t>(i * columns + c)];
      }
    }
    StepDesc step;
    step.kernel = "popx.scatter";
    step.operands = {table.desc, indices.desc, updates.desc};
    step.attributes.set("window", Shape{1}).set("map", Shape{0}).set("batching", Shape{-1});
    step.attributes.set("sizes", Shape{1, columns}).set("clamp", std::int64_t{0});
    step.attributes.set("body", std::string("expr")).set("unique", std::int64_t{0});
    step.attributes.set("expr", program.toIntegers());
    run(step, {table.pointer(), indices.pointer(), updates.pointer()});
    CHECK(table.memory == expected);
  }
}

TEST(scatter_half_add_rounds_after_each_update) {
  Array<std::uint16_t> table(ElementType::kHalf, Access::kReadWrite, {1});
  Array<std::int32_t> indices(ElementType::kInt32, Access::kRead, {3, 1});
  Array<std::uint16_t> updates(ElementType::kHalf, Access::kRead, {3});
  table.memory = {0x6800};                    // 2048
  updates.memory = {0x3c00, 0x3c00, 0x4000};  // 1, 1, 2: only the last one counts in half
  StepDesc step;
  step.kernel = "popx.scatter";
  step.operands = {table.desc, indices.desc, updates.desc};
  step.attributes.set("window", Shape{}).set("map", Shape{0}).set("batching", Shape{-1});
  step.attributes.set("sizes", Shape{1}).set("clamp", std::int64_t{0});
  step.attributes.set("body", std::string("add")).set("unique", std::int64_t{0});
  run(step, {table.pointer(), indices.pointer(), updates.pointer()});
  CHECK_EQ(table.memory[0], 0x6801);  // 2050
}

TEST(scatter_refuses_unknown_body) {
  Array<float> x(ElementType::kFloat, Access::kReadWrite, {1});
  Array<std::int32_t> i(ElementType::kInt32, Access::kRead, {1});
  Array<float> u(ElementType::kFloat, Access::kRead, {});
  StepDesc step;
  step.kernel = "popx.scatter";
  step.operands = {x.desc, i.desc, u.desc};
  step.attributes.set("window", Shape{}).set("map", Shape{0}).set("batching", Shape{});
  step.attributes.set("sizes", Shape{1}).set("clamp", std::int64_t{0});
  step.attributes.set("body", std::string("median")).set("unique", std::int64_t{0});
  CHECK_THROWS(run(step, {x.pointer(), i.pointer(), u.pointer()}), "median");
}
