#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "Check.hpp"
#include "engine/kernels/conv/Window.hpp"
#include "engine/kernels/reduce/ReduceKernels.hpp"
#include "popops/Expr.hpp"
#include "popops/StepRunner.hpp"
#include "popops/internal/ExprCompile.hpp"

using namespace step_runner;
using ipujax::engine::Window;
using ipujax::engine::reduction::Reducer;
namespace pe = popops::expr;

namespace {

const float kInf = std::numeric_limits<float>::infinity();

Shape outputOf(const Window& w, const Shape& shape) {
  Shape out;
  for (std::size_t d = 0; d < shape.size(); ++d) out.push_back(w.outputSize(d, shape[d]));
  return out;
}

/// Calls f(position, inside) for every tap of one output, row-major.
template <class F>
void taps(const Window& w, const Shape& shape, const Shape& output, const F& f) {
  each(w.sizes, [&](const Shape& k) {
    Shape at;
    bool inside = true;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t p =
          output[d] * w.strides[d] - w.padding_low[d] + k[d] * w.window_dilations[d];
      inside =
          inside && p >= 0 && p % w.base_dilations[d] == 0 && p / w.base_dilations[d] < shape[d];
      at.push_back(p / w.base_dilations[d]);
    }
    f(at, inside);
  });
}

template <class T, class F>
void checkNamed(ElementType type, Reducer reducer, T init, const F& combine, const Window& w,
                const Shape& shape, std::mt19937* strange, double tol) {
  std::mt19937 random(static_cast<unsigned>(product(shape)));
  Array<T> in(type, Access::kRead, shape, strange);
  Array<T> out(type, Access::kWrite, outputOf(w, shape));
  Array<T> start(type, Access::kRead, {});
  start.memory = {init};
  for (T& v : in.memory) v = static_cast<T>(static_cast<int>(random() % 9) - 4);
  StepDesc step;
  step.kernel = "popx.reduce_window";
  step.operands = {in.desc, out.desc, start.desc};
  step.attributes.set("reducer", static_cast<std::int64_t>(reducer))
      .set("average", std::int64_t{0})
      .set("window", w.toIntegers());
  run(step, {in.pointer(), out.pointer(), start.pointer()});
  each(outputOf(w, shape), [&](const Shape& o) {
    T want = init;
    taps(w, shape, o,
         [&](const Shape& at, bool inside) { want = inside ? combine(want, in.at(at)) : want; });
    CHECK_NEAR(static_cast<double>(out.at(o)), static_cast<double>(want), tol);
  });
}

template <class T>
T add(T a, T b) {
  return a + b;
}
template <class T>
T larger(T a, T b) {
  return std::max(a, b);
}

Window randomWindow(const Shape& shape, std::mt19937& random, bool dilations) {
  Window w = Window::of(Shape(shape.size(), 1));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (random() % 3 == 0) continue;
    w.sizes[d] = 1 + random() % 4;
    w.strides[d] = 1 + random() % 3;
    w.padding_low[d] = static_cast<std::int64_t>(random() % 4) - 1;
    w.padding_high[d] = static_cast<std::int64_t>(random() % 4) - 1;
    if (!dilations) continue;
    w.base_dilations[d] = 1 + random() % 3;
    w.window_dilations[d] = 1 + random() % 3;
  }
  return w;
}

}  // namespace

TEST(named_windows_match_a_loop) {
  std::mt19937 random(4);
  const std::int64_t sizes[] = {1, 2, 5, 9, 20};
  for (int round = 0; round < 150; ++round) {
    Shape shape;
    const std::size_t rank = random() % 5;
    for (std::size_t d = 0; d < rank; ++d) shape.push_back(sizes[random() % (rank > 3 ? 4 : 5)]);
    if (round == 7) shape = {0, 3};
    const Window w = randomWindow(shape, random, round % 2 == 0);
    std::mt19937* strange = round % 3 ? &random : nullptr;
    checkNamed<float>(ElementType::kFloat, Reducer::kAdd, 0.0f, add<float>, w, shape, strange, 0);
    checkNamed<float>(ElementType::kFloat, Reducer::kAdd, 2.0f, add<float>, w, shape, strange, 0);
    checkNamed<float>(ElementType::kFloat, Reducer::kMaximum, -kInf, larger<float>, w, shape,
                      strange, 0);
    checkNamed<float>(ElementType::kFloat, Reducer::kMaximum, 1.0f, larger<float>, w, shape,
                      strange, 0);
    checkNamed<std::int32_t>(ElementType::kInt32, Reducer::kAdd, 0, add<std::int32_t>, w, shape,
                             strange, 0);
  }
}

TEST(long_windows_match_a_loop) {
  std::mt19937 random(6);
  for (Shape shape : {Shape{100}, Shape{3, 100}, Shape{100, 3}, Shape{2, 100, 70}, Shape{300, 1}}) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t n = shape[d];
      if (n < 16) continue;
      const Shape paddings[] = {{n, n - 1, 0},  {n, 0, n - 1}, {n, n - 1, n - 1}, {20, 19, 0},
                                {20, 7, 12},    {20, 0, 0},    {n + 5, n, n},     {16, 30, 30},
                                {n, n - 1, -3}, {17, -2, -3},  {n, 2 * n, 0}};
      for (const Shape& p : paddings) {
        Window w = Window::of(Shape(shape.size(), 1));
        w.sizes[d] = p[0];
        w.padding_low[d] = p[1];
        w.padding_high[d] = p[2];
        for (std::mt19937* strange : {static_cast<std::mt19937*>(nullptr), &random}) {
          checkNamed<float>(ElementType::kFloat, Reducer::kAdd, 0.0f, add<float>, w, shape, strange,
                            0);
          checkNamed<float>(ElementType::kFloat, Reducer::kMaximum, -kInf, larger<float>, w, shape,
                            strange, 0);
        }
      }
    }
  }
}

TEST(cumulative_sums_keep_their_digits) {
  const std::int64_t n = 1 << 20;
  Window w = Window::of({n});
  w.padding_low = {n - 1};
  Array<float> in(ElementType::kFloat, Access::kRead, {n});
  Array<float> out(ElementType::kFloat, Access::kWrite, {n});
  std::fill(in.memory.begin(), in.memory.end(), 0.1f);
  StepDesc step;
  step.kernel = "popx.reduce_window";
  step.operands = {in.desc, out.desc};
  step.attributes.set("reducer", static_cast<std::int64_t>(Reducer::kAdd))
      .set("average", std::int64_t{0})
      .set("window", w.toIntegers());
  run(step, {in.pointer(), out.pointer()});
  for (std::int64_t i : {std::int64_t{0}, std::int64_t{4095}, std::int64_t{4096}, n - 1}) {
    const double want = static_cast<double>(0.1f) * static_cast<double>(i + 1);
    CHECK_NEAR(out.memory[i], want, want * 4e-6);
  }
}

/// (a, b) . (c, d) = (a c, b c + d): associative, not commutative. Its identity is (1, 0); other
/// initial values show that padding contributes nothing.
TEST(windows_of_any_body_keep_the_order) {
  const auto at = [](unsigned i) { return pe::PlaceHolder(i); };
  const auto program =
      popops::internal::compileExpr({pe::Mul(at(1), at(3)), pe::Add(pe::Mul(at(2), at(3)), at(4))},
                                    std::vector<poplar::Type>(4, poplar::UNSIGNED_INT));
  std::mt19937 random(8);
  const ElementType type = ElementType::kUInt32;
  for (int round = 0; round < 80; ++round) {
    Shape shape{static_cast<std::int64_t>(1 + random() % 5),
                static_cast<std::int64_t>(1 + random() % 30),
                static_cast<std::int64_t>(1 + random() % 5)};
    Window w = randomWindow(shape, random, round % 2 == 0);
    if (round % 4 == 3) {
      shape[1] = 100;
      w = Window::of({1, static_cast<std::int64_t>(32 + random() % 90), 1});
      w.padding_low[1] = static_cast<std::int64_t>(random() % 100);
      w.padding_high[1] = static_cast<std::int64_t>(random() % 100);
      w.strides[1] = 1 + random() % 2;
    }
    std::mt19937* strange = round % 3 ? &random : nullptr;
    const Shape out_shape = outputOf(w, shape);
    Array<std::uint32_t> a(type, Access::kRead, shape, strange);
    Array<std::uint32_t> b(type, Access::kRead, shape, strange);
    Array<std::uint32_t> c(type, Access::kWrite, out_shape);
    Array<std::uint32_t> d(type, Access::kWrite, out_shape);
    Array<std::uint32_t> first(type, Access::kRead, {});
    Array<std::uint32_t> second(type, Access::kRead, {});
    first.memory = {round % 3 ? 3u : 1u};
    second.memory = {round % 3 ? 5u : 0u};
    for (auto* m : {&a.memory, &b.memory}) {
      for (auto& v : *m) v = random() | 1;
    }
    StepDesc step;
    step.kernel = "popx.reduce_window_body";
    step.operands = {a.desc, b.desc, c.desc, d.desc, first.desc, second.desc};
    step.attributes.set("window", w.toIntegers()).set("expr", program.toIntegers());
    run(step,
        {a.pointer(), b.pointer(), c.pointer(), d.pointer(), first.pointer(), second.pointer()});
    each(out_shape, [&](const Shape& o) {
      std::uint32_t x = first.memory[0], y = second.memory[0];
      taps(w, shape, o, [&](const Shape& p, bool inside) {
        if (!inside) return;
        x *= a.at(p);
        y = y * a.at(p) + b.at(p);
      });
      CHECK_EQ(c.at(o), x);
      CHECK_EQ(d.at(o), y);
    });
  }
}

TEST(select_and_scatter_matches_a_loop) {
  const auto at = [](unsigned i) { return pe::PlaceHolder(i); };
  const std::vector<poplar::Type> two(2, poplar::FLOAT);
  std::mt19937 random(12);
  for (int round = 0; round < 80; ++round) {
    Shape shape{
        static_cast<std::int64_t>(1 + random() % 3), static_cast<std::int64_t>(2 + random() % 9),
        static_cast<std::int64_t>(2 + random() % 9), static_cast<std::int64_t>(1 + random() % 70)};
    Window w = randomWindow(shape, random, false);
    if (round % 2) w.sizes[3] = w.strides[3] = 1, w.padding_low[3] = w.padding_high[3] = 0;
    const bool least = round % 5 == 0;
    const auto select = popops::internal::compileExpr(
        {least ? pe::Expr(pe::Lte(at(1), at(2))) : pe::Expr(pe::Gte(at(1), at(2)))}, two);
    const auto scatter = popops::internal::compileExpr({pe::Add(at(1), at(2))}, two);
    std::mt19937* strange = round % 3 ? &random : nullptr;
    const Shape windows = outputOf(w, shape);
    Array<float> operand(ElementType::kFloat, Access::kRead, shape, strange);
    Array<float> source(ElementType::kFloat, Access::kRead, windows, strange);
    Array<float> init(ElementType::kFloat, Access::kRead, {});
    Array<float> out(ElementType::kFloat, Access::kWrite, shape);
    Array<float> want(ElementType::kFloat, Access::kWrite, shape);
    init.memory = {0.5f};
    if (round % 6 == 1) {  // the gradient of a sum: one value, broadcast
      source.desc.strides.assign(4, 0);
      source.desc.offset = 0;
    }
    for (float& v : operand.memory) v = static_cast<float>(random() % 5);
    if (round % 7 == 0) operand.memory[operand.memory.size() / 2] = std::nanf("");
    for (float& v : source.memory) v = static_cast<float>(random() % 16);
    StepDesc step;
    step.kernel = "popx.select_and_scatter";
    step.operands = {operand.desc, source.desc, init.desc, out.desc};
    step.attributes.set("window", w.toIntegers())
        .set("select", select.toIntegers())
        .set("scatter", scatter.toIntegers());
    run(step, {operand.pointer(), source.pointer(), init.pointer(), out.pointer()});
    std::fill(want.memory.begin(), want.memory.end(), 0.5f);
    each(windows, [&](const Shape& o) {
      Shape best;
      taps(w, shape, o, [&](const Shape& p, bool inside) {
        if (!inside) return;
        const bool keep = !best.empty() && (least ? operand.at(best) <= operand.at(p)
                                                  : operand.at(best) >= operand.at(p));
        if (!keep) best = p;
      });
      if (!best.empty()) want.at(best) += source.at(o);
    });
    each(shape, [&](const Shape& i) { CHECK_EQ(out.at(i), want.at(i)); });
  }
}
