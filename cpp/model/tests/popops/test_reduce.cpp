#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "Check.hpp"
#include "ReduceModel.hpp"
#include "StepRunner.hpp"
#include "engine/Half.hpp"
#include "engine/kernels/reduce/ReduceKernels.hpp"
#include "popops/Reduce.hpp"

using namespace step_runner;
using ipujax::engine::reduction::Reducer;

namespace {

bool isReduced(const Shape& dims, std::size_t d) {
  return std::count(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) > 0;
}

Shape keptOf(const Shape& shape, const Shape& dims) {
  Shape kept;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!isReduced(dims, d)) kept.push_back(shape[d]);
  }
  return kept;
}

StepDesc reduceStep(Reducer reducer, const OperandDesc& in, const OperandDesc& out, Shape dims) {
  StepDesc step;
  step.kernel = "popops.reduce";
  step.operands = {in, out};
  step.attributes.set("reducer", static_cast<std::int64_t>(reducer))
      .set("dims", dims)
      .set("update", std::int64_t{0})
      .set("scale", std::int64_t{-1})
      .set("init", std::int64_t{-1});
  return step;
}

template <class T, class Wide, class F>
void againstLoop(ElementType type, Reducer reducer, Wide identity, const F& combine, double tol,
                 unsigned seed) {
  std::mt19937 random(seed);
  for (int round = 0; round < 40; ++round) {
    Shape shape;
    Shape dims;
    const std::size_t rank = random() % 6;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t sizes[] = {1, 2, 3, 5, 17, 70};
      shape.push_back(random() % 25 == 0 ? 0 : sizes[random() % (rank > 3 ? 4 : 6)]);
      if (random() % 2) dims.push_back(static_cast<std::int64_t>(d));
    }
    Array<T> in(type, Access::kRead, shape, &random);
    Array<T> out(type, Access::kWrite, keptOf(shape, dims));
    for (T& v : in.memory) v = static_cast<T>(static_cast<int>(random() % 9) - 4);
    if (type == ElementType::kBool) {
      for (T& v : in.memory) v = static_cast<T>(random() % 2);
    }
    Array<Wide> want(type, Access::kWrite, keptOf(shape, dims));
    std::fill(want.memory.begin(), want.memory.end(), identity);
    each(shape, [&](const Shape& index) {
      Shape kept;
      for (std::size_t d = 0; d < rank; ++d) {
        if (!isReduced(dims, d)) kept.push_back(index[d]);
      }
      Wide& w = want.at(kept);
      w = combine(w, static_cast<Wide>(in.at(index)));
    });
    run(reduceStep(reducer, in.desc, out.desc, dims), {in.pointer(), out.pointer()});
    each(keptOf(shape, dims), [&](const Shape& index) {
      CHECK_NEAR(static_cast<double>(out.at(index)), static_cast<double>(want.at(index)), tol);
    });
  }
}

const float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> reduceRow(Reducer reducer, std::vector<float> values, Shape shape, Shape dims) {
  Array<float> in(ElementType::kFloat, Access::kRead, shape);
  in.memory = std::move(values);
  Array<float> out(ElementType::kFloat, Access::kWrite, keptOf(shape, dims));
  run(reduceStep(reducer, in.desc, out.desc, dims), {in.pointer(), out.pointer()});
  return out.memory;
}

}  // namespace

TEST(float_reductions_of_strided_views_match_loops) {
  againstLoop<float, double>(
      ElementType::kFloat, Reducer::kAdd, 0.0, [](double a, double b) { return a + b; }, 1e-9, 1);
  againstLoop<float, double>(
      ElementType::kFloat, Reducer::kSquareAdd, 0.0, [](double a, double b) { return a + b * b; },
      1e-9, 2);
  againstLoop<float, double>(
      ElementType::kFloat, Reducer::kMaximum, -kInf,
      [](double a, double b) { return std::max(a, b); }, 0, 3);
  againstLoop<float, double>(
      ElementType::kFloat, Reducer::kMinimum, kInf,
      [](double a, double b) { return std::min(a, b); }, 0, 4);
}

TEST(integers_wrap_and_compare_by_their_signs) {
  againstLoop<std::int8_t, std::int8_t>(
      ElementType::kInt8, Reducer::kAdd, 0,
      [](std::int8_t a, std::int8_t b) { return static_cast<std::int8_t>(a + b); }, 0, 5);
  againstLoop<std::uint8_t, std::uint8_t>(
      ElementType::kUInt8, Reducer::kMaximum, 0,
      [](std::uint8_t a, std::uint8_t b) { return std::max(a, b); }, 0, 6);
  againstLoop<std::int32_t, std::int32_t>(
      ElementType::kInt32, Reducer::kMultiply, 1,
      [](std::int32_t a, std::int32_t b) {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) *
                                         static_cast<std::uint32_t>(b));
      },
      0, 7);
  againstLoop<std::int16_t, std::int16_t>(
      ElementType::kInt16, Reducer::kMinimum, 32767,
      [](std::int16_t a, std::int16_t b) { return std::min(a, b); }, 0, 8);
  againstLoop<std::uint32_t, std::uint32_t>(
      ElementType::kUInt32, Reducer::kXor, 0,
      [](std::uint32_t a, std::uint32_t b) { return a ^ b; }, 0, 9);
}

TEST(bool_is_all_and_any) {
  const auto all = [](std::uint8_t a, std::uint8_t b) { return std::uint8_t(a & b); };
  const auto any = [](std::uint8_t a, std::uint8_t b) { return std::uint8_t(a | b); };
  againstLoop<std::uint8_t, std::uint8_t>(ElementType::kBool, Reducer::kAnd, 1, all, 0, 10);
  againstLoop<std::uint8_t, std::uint8_t>(ElementType::kBool, Reducer::kOr, 0, any, 0, 11);
}

TEST(nan_propagates_and_infinities_survive) {
  std::vector<float> values(100, 1.0f);
  values[63] = kNan;
  CHECK(std::isnan(reduceRow(Reducer::kMaximum, values, {100}, {0})[0]));
  CHECK(std::isnan(reduceRow(Reducer::kMinimum, values, {100}, {0})[0]));
  values[63] = kInf;
  CHECK_EQ(reduceRow(Reducer::kMaximum, values, {100}, {0})[0], kInf);
  CHECK_EQ(reduceRow(Reducer::kAdd, values, {100}, {0})[0], kInf);
  values[5] = -kInf;
  CHECK(std::isnan(reduceRow(Reducer::kAdd, values, {100}, {0})[0]));
}

TEST(log_add_does_not_overflow) {
  const std::vector<float> values{1000.0f, 1000.0f, -kInf};
  CHECK_NEAR(reduceRow(Reducer::kLogAdd, values, {3}, {0})[0], 1000.0 + std::log(2.0), 1e-3);
  CHECK_EQ(reduceRow(Reducer::kLogAdd, {-kInf, -kInf}, {2}, {0})[0], -kInf);
}

TEST(long_sums_keep_their_digits) {
  // A running float sum of 2^22 times 0.1 is off by more than 100.
  const std::int64_t n = 1 << 22;
  const std::vector<float> values(static_cast<std::size_t>(n), 0.1f);
  const double want = static_cast<double>(0.1f) * static_cast<double>(n);
  CHECK_NEAR(reduceRow(Reducer::kAdd, values, {n}, {0})[0], want, want * 1e-6);
  CHECK_NEAR(reduceRow(Reducer::kAdd, values, {n / 4, 4}, {0})[1], want / 4, want * 1e-6);
  CHECK_NEAR(reduceRow(Reducer::kAdd, values, {n / 256, 256}, {0})[9], want / 256, want * 1e-8);
}

TEST(half_accumulates_in_float_and_rounds_once) {
  const std::int64_t n = 4096;
  Array<std::uint16_t> in(ElementType::kHalf, Access::kRead, {n});
  for (auto& v : in.memory) v = ipujax::engine::floatToHalf(1.0f);
  Array<std::uint16_t> out(ElementType::kHalf, Access::kWrite, {});
  run(reduceStep(Reducer::kAdd, in.desc, out.desc, {0}), {in.pointer(), out.pointer()});
  CHECK_EQ(ipujax::engine::halfToFloat(out.memory[0]), 4096.0f);
}

TEST(broadcast_views_are_reduced_as_often_as_they_appear) {
  Array<float> in(ElementType::kFloat, Access::kRead, {3, 4});
  std::iota(in.memory.begin(), in.memory.end(), 1.0f);
  in.desc.shape = {3, 5};
  in.desc.strides = {1, 0};
  Array<float> out(ElementType::kFloat, Access::kWrite, {3});
  run(reduceStep(Reducer::kAdd, in.desc, out.desc, {1}), {in.pointer(), out.pointer()});
  CHECK_EQ(out.memory[2], 15.0f);
}

using reduce_model::Model;

TEST(reduce_scales_and_updates_in_a_program) {
  Model m;
  const auto in = m.variable(poplar::FLOAT, {2, 3}, "in");
  const auto out = m.variable(poplar::FLOAT, {3}, "out");
  const auto scale = m.graph.addConstant<float>(poplar::FLOAT, {}, 0.5f, "scale");
  m.graph.setTileMapping(scale, 0);
  popops::reduceWithOutput(m.graph, in, out, {0}, {popops::Operation::ADD, true, scale}, m.prog);
  std::vector<float> x{1, 2, 3, 4, 5, 6};
  std::vector<float> y{10, 20, 30};
  m.run({{in, x.data()}, {out, y.data()}}, {{out, y.data()}});
  CHECK_EQ(y[0], 12.5f);
  CHECK_EQ(y[2], 34.5f);
}

TEST(reduce_updates_integers) {
  Model m;
  const auto in = m.variable(poplar::INT, {2, 3}, "in");
  const auto out = m.variable(poplar::INT, {3}, "out");
  popops::reduceWithOutput(m.graph, in, out, {0}, {popops::Operation::SQUARE_ADD, true}, m.prog);
  std::vector<int> x{1, 2, 3, 4, 5, -6};
  std::vector<int> y{100, 200, -300};
  m.run({{in, x.data()}, {out, y.data()}}, {{out, y.data()}});
  CHECK(y == (std::vector<int>{117, 229, -255}));
}

TEST(reduce_of_a_transposed_view_and_another_type) {
  Model m;
  const auto in = m.variable(poplar::HALF, {2, 3}, "in");
  const auto out =
      popops::reduce(m.graph, in.transpose(), poplar::FLOAT, {1}, popops::Operation::MAX, m.prog);
  CHECK(out.elementType() == poplar::FLOAT);
  std::vector<std::uint16_t> x;
  for (float v : {1.0f, 5.0f, 3.0f, 4.0f, 2.0f, 6.0f}) {
    x.push_back(ipujax::engine::floatToHalf(v));
  }
  std::vector<float> y(3);
  m.run({{in, x.data()}}, {{out, y.data()}});
  CHECK_EQ(y[0], 4.0f);
  CHECK_EQ(y[1], 5.0f);
  CHECK_EQ(y[2], 6.0f);
}

TEST(a_dimension_may_be_named_twice) {
  Model m;
  const auto in = m.variable(poplar::INT, {2, 3}, "in");
  const auto out = popops::reduce(m.graph, in, {1, 0, 1}, popops::Operation::ADD, m.prog);
  CHECK_EQ(out.rank(), 0u);
  const std::vector<int> x{1, 2, 3, 4, 5, 6};
  int y = 0;
  m.run({{in, const_cast<int*>(x.data())}}, {{out, &y}});
  CHECK_EQ(y, 21);
}

TEST(log_add_takes_a_scale_and_an_update_in_logarithms) {
  Model m;
  const auto in = m.variable(poplar::FLOAT, {3, 100}, "in");
  const auto out = m.variable(poplar::FLOAT, {100}, "out");
  const auto half = m.variable(poplar::HALF, {100}, "half");
  const auto scale = m.graph.addConstant(poplar::FLOAT, {}, std::log(0.5f));
  m.graph.setTileMapping(scale, 0);
  const popops::ReduceParams params(popops::Operation::LOG_ADD, true, scale);
  popops::reduceWithOutput(m.graph, in, out, {0}, params, m.prog);
  popops::reduceWithOutput(m.graph, in, half, {0}, params, m.prog);
  std::vector<float> x(300);
  std::vector<float> y(100);
  std::vector<std::uint16_t> z(100);
  for (int i = 0; i < 300; ++i) x[i] = std::log(1.0f + static_cast<float>(i % 7));
  for (int i = 0; i < 100; ++i) {
    y[i] = std::log(2.0f + static_cast<float>(i));
    z[i] = ipujax::engine::floatToHalf(y[i]);
  }
  m.graph.createHostWrite("y", out);
  m.graph.createHostWrite("z", half);
  m.graph.createHostRead("y", out);
  m.graph.createHostRead("z", half);
  m.graph.createHostWrite("x", in);
  poplar::Engine engine(m.graph, m.prog);
  engine.load(poplar::Device(m.graph.getTarget()));
  engine.writeTensor("x", x.data(), x.data() + 300);
  engine.writeTensor("y", y.data(), y.data() + 100);
  engine.writeTensor("z", z.data(), z.data() + 100);
  engine.run();
  engine.readTensor("y", y.data(), y.data() + 100);
  engine.readTensor("z", z.data(), z.data() + 100);
  for (int i = 0; i < 100; ++i) {
    float sum = 0;
    for (int k = 0; k < 3; ++k) sum += std::exp(x[100 * k + i]);
    const float expected = std::log(2.0f + static_cast<float>(i) + 0.5f * sum);
    CHECK_NEAR(y[i], expected, 1e-5f);
    CHECK_NEAR(ipujax::engine::halfToFloat(z[i]), expected, 5e-3f);
  }
}

TEST(reduce_refuses_what_it_cannot_mean) {
  Model m;
  const auto in = m.variable(poplar::INT, {2, 3}, "in");
  using popops::Operation;
  CHECK_THROWS(popops::reduce(m.graph, in, {2}, Operation::ADD, m.prog), "dimensions below 2");
  CHECK_THROWS(popops::reduceWithOutput(m.graph, in, m.variable(poplar::INT, {3}, "update"), {0},
                                        {Operation::MAX, true}, m.prog),
               "LOG_ADD");
  const auto scale = m.graph.addConstant<float>(poplar::FLOAT, {}, 0.5f, "scale");
  CHECK_THROWS(popops::reduce(m.graph, in, {0}, {Operation::ADD, false, scale}, m.prog),
               "floating elements for a scale");
  CHECK_THROWS(popops::reduce(m.graph, in, {0}, Operation::LOGICAL_AND, m.prog), "BOOL");
  CHECK_THROWS(popops::reduce(m.graph, in, {0}, Operation::LOG_ADD, m.prog), "int");
  CHECK_THROWS(popops::reduce(m.graph, in, poplar::FLOAT, {0}, Operation::ADD, m.prog), "float");
}
