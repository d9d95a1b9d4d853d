#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "Check.hpp"
#include "StepDeclared.hpp"
#include "engine/kernels/Kernel.hpp"
#include "popops/internal/ExprCompile.hpp"
#include "popx/Expr.hpp"

/// The kernel of every elementwise step on views of all kinds, against a loop over each index.
namespace {
using namespace ipujax::engine;
using popops::expr::_1;
using popops::expr::_2;
using popops::expr::_3;
using Shape = std::vector<std::int64_t>;

struct View {
  Shape strides;
  std::int64_t offset = 0;
  std::int64_t room = 1;  ///< elements of the buffer
};

std::int64_t count(const Shape& shape) {
  std::int64_t n = 1;
  for (auto d : shape) n *= d;
  return n;
}

/// A dense buffer with its dimensions in random order, some of them broadcast, reversed or gapped.
View randomView(const Shape& shape, bool written, std::mt19937& r) {
  View v;
  v.strides.assign(shape.size(), 0);
  std::vector<std::size_t> order(shape.size());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  if (r() % 2) std::shuffle(order.begin(), order.end(), r);
  std::int64_t step = !written && r() % 5 == 0 ? 3 : 1;
  for (std::size_t k = order.size(); k-- > 0;) {
    const std::size_t d = order[k];
    if (!written && r() % 4 == 0) continue;  // broadcast
    v.strides[d] = step;
    step *= shape[d];
    if (r() % 5 == 0) {
      v.offset += v.strides[d] * (shape[d] - 1);
      v.strides[d] = -v.strides[d];
    }
  }
  v.room = step + 4;
  return v;
}

std::int64_t at(const View& v, const Shape& shape, std::int64_t index) {
  std::int64_t p = v.offset;
  for (std::size_t d = shape.size(); d-- > 0;) {
    p += index % shape[d] * v.strides[d];
    index /= shape[d];
  }
  return p;
}

OperandDesc operand(const Shape& shape, const View& v, ElementType type, Access access) {
  OperandDesc o;
  o.type = type;
  o.access = access;
  o.shape = shape;
  o.strides = v.strides;
  o.offset = v.offset;
  return o;
}

struct Case {
  StepDesc step;
  std::vector<std::vector<float>> buffers;
  std::vector<View> views;
};

void runKernel(Case& c) {
  std::vector<std::byte*> pointers;
  for (std::size_t o = 0; o < c.buffers.size(); ++o)
    pointers.push_back(reinterpret_cast<std::byte*>(c.buffers[o].data() + c.views[o].offset));
  RunContext context{ThreadPool::shared()};
  KernelRegistry::instance().make(c.step)->run(context, pointers);
}

Case makeCase(const Shape& shape, const std::vector<View>& views, std::mt19937& r) {
  Case c;
  c.step.kernel = "popx.map";
  const auto program = popops::internal::compileExpr({_1 * _2 + _3, _1 - _2},
                                                     {poplar::FLOAT, poplar::FLOAT, poplar::FLOAT});
  c.step.attributes.set("expr", program.toIntegers());
  c.views = views;
  for (std::size_t o = 0; o < views.size(); ++o) {
    c.step.operands.push_back(
        operand(shape, views[o], ElementType::kFloat, o < 3 ? Access::kRead : Access::kWrite));
    std::vector<float> b(static_cast<std::size_t>(views[o].room));
    for (auto& x : b) x = static_cast<float>(static_cast<int>(r() % 2001) - 1000);
    c.buffers.push_back(std::move(b));
  }
  return c;
}

void check_case(const Shape& shape, Case c) {
  const auto in = c.buffers;
  runKernel(c);
  for (std::int64_t k = 0; k < count(shape); ++k) {
    const auto value = [&](std::size_t o) {
      return in[o][static_cast<std::size_t>(at(c.views[o], shape, k))];
    };
    const auto got = [&](std::size_t o) {
      return c.buffers[o][static_cast<std::size_t>(at(c.views[o], shape, k))];
    };
    if (got(3) != value(0) * value(1) + value(2) || got(4) != value(0) - value(1)) {
      std::string text;
      for (auto d : shape) text += std::to_string(d) + " ";
      for (const auto& v : c.views) {
        text += "| ";
        for (auto s : v.strides) text += std::to_string(s) + " ";
      }
      check::fail(__FILE__, __LINE__, "element ", k, " of shape and strides ", text, ": ", got(3),
                  " and ", got(4));
    }
  }
  for (std::size_t o = 3; o < 5; ++o) {  // nothing outside the view is written
    auto rest = c.buffers[o];
    auto before = in[o];
    for (std::int64_t k = 0; k < count(shape); ++k)
      rest[static_cast<std::size_t>(at(c.views[o], shape, k))] =
          before[static_cast<std::size_t>(at(c.views[o], shape, k))] = 0;
    CHECK(rest == before);
  }
}
}  // namespace

TEST(random_views_of_all_kinds) {
  std::mt19937 r(3);
  const Shape shapes[] = {{},         {1},          {4},          {1000},        {5, 7},
                          {64, 130},  {3, 5, 7},    {2, 3, 4, 5}, {33, 2, 65},   {1, 100, 1},
                          {100, 600}, {40, 3, 100}, {200, 200},   {7, 1, 9, 40}, {0, 5}};
  for (int trial = 0; trial < 400; ++trial) {
    const Shape& shape = shapes[r() % std::size(shapes)];
    std::vector<View> views;
    for (int o = 0; o < 5; ++o) views.push_back(randomView(shape, o >= 3, r));
    check_case(shape, makeCase(shape, views, r));
  }
}

TEST(rows_columns_and_scalars_of_large_tensors) {
  std::mt19937 r(4);
  const Shape shape{300, 1000};
  const View dense{{1000, 1}, 0, 300000};
  const View row{{0, 1}, 0, 1000};
  const View column{{1, 0}, 0, 300};
  const View scalar{{0, 0}, 0, 1};
  const View transposed{{1, 300}, 0, 300000};
  for (const View& a : {dense, row, column, scalar, transposed})
    for (const View& b : {dense, row, column, transposed})
      check_case(shape, makeCase(shape, {a, b, scalar, dense, dense}, r));
  check_case(shape, makeCase(shape, {dense, row, column, transposed, dense}, r));
}

TEST(in_place_and_many_types) {
  std::vector<std::int32_t> a(50000);
  std::vector<std::uint8_t> p(a.size());
  for (std::size_t k = 0; k < a.size(); ++k) a[k] = static_cast<std::int32_t>(k) - 25000;
  auto want = a;
  for (auto& x : want) x = x < 0 ? -2 * x : 7;
  StepDesc step;
  step.kernel = "popx.map";
  const auto negative = _1 < 0;
  const auto program = popops::internal::compileExpr(
      {popops::expr::Select(_1 * -2, popops::expr::Const(7), negative), negative}, {poplar::INT});
  step.attributes.set("expr", program.toIntegers());
  const Shape shape{static_cast<std::int64_t>(a.size())};
  const View dense{{1}, 0, 1};
  step.operands = {operand(shape, dense, ElementType::kInt32, Access::kRead),
                   operand(shape, dense, ElementType::kInt32, Access::kWrite),
                   operand(shape, dense, ElementType::kBool, Access::kWrite)};
  std::byte* pointers[] = {reinterpret_cast<std::byte*>(a.data()),
                           reinterpret_cast<std::byte*>(a.data()),
                           reinterpret_cast<std::byte*>(p.data())};
  RunContext context{ThreadPool::shared()};
  KernelRegistry::instance().make(step)->run(context, pointers);
  CHECK(a == want);
  for (std::size_t k = 0; k < p.size(); ++k) CHECK_EQ(p[k], k < 25000);
}

TEST(a_map_without_inputs_fills) {
  StepDesc step;
  step.kernel = "popx.map";
  step.attributes.set("expr",
                      popops::internal::compileExpr({popops::expr::Const(poplar::FLOAT, 2.5f)},
                                                    std::vector<poplar::Type>{})
                          .toIntegers());
  const Shape shape{30, 40};
  const View gapped{{80, 2}, 0, 2400};
  step.operands = {operand(shape, gapped, ElementType::kFloat, Access::kWrite)};
  std::vector<float> out(2400, 1.0f);
  std::byte* pointers[] = {reinterpret_cast<std::byte*>(out.data())};
  RunContext context{ThreadPool::shared()};
  KernelRegistry::instance().make(step)->run(context, pointers);
  for (std::size_t k = 0; k < out.size(); ++k) CHECK_EQ(out[k], k % 2 ? 1.0f : 2.5f);
}

TEST(damaged_steps_are_refused) {
  StepDesc step;
  step.kernel = "popx.map";
  step.attributes.set(
      "expr", popops::internal::compileExpr({_1 + _2}, {poplar::INT, poplar::INT}).toIntegers());
  CHECK_THROWS(check::declared(step), "needs 3 operands; it has 0");
  const View dense{{1}, 0, 1};
  step.operands.assign(3, operand({4}, dense, ElementType::kFloat, Access::kRead));
  step.operands[2].access = Access::kWrite;
  CHECK_THROWS(check::declared(step), "kernel popx.map needs operand 0 to");
}
