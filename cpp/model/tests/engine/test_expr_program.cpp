#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "Check.hpp"
#include "engine/Half.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "popops/Expr.hpp"
#include "popops/internal/ExprCompile.hpp"

/// Programs: equal whether fused or run one operation at a time, in place or not, saved or not.
namespace {
using namespace ipujax::engine;
using expr::ExprBuilder;
using expr::ExprEvaluator;
using expr::ExprProgram;
using expr::Op;
using Bytes = std::vector<std::byte>;

Bytes run(const ExprProgram& p, const std::vector<Bytes>& inputs, std::size_t n,
          std::size_t output = 0, const std::vector<bool>& uniform = {}) {
  std::vector<const std::byte*> in;
  for (const auto& b : inputs) in.push_back(b.data());
  std::vector<Bytes> out;
  for (auto t : p.outputTypes()) out.emplace_back(n * sizeOf(t));
  std::vector<std::byte*> o;
  for (auto& b : out) o.push_back(b.data());
  ExprEvaluator(p, uniform).run(in, o, static_cast<std::int64_t>(n));
  return out[output];
}

Bytes random(ElementType type, std::size_t n, std::mt19937& r) {
  Bytes b(n * sizeOf(type));
  for (std::size_t k = 0; k < n; ++k) {
    const float f = static_cast<float>(static_cast<int>(r() % 801)) / 100 - 4;
    if (type == ElementType::kFloat)
      std::memcpy(&b[k * 4], &f, 4);
    else if (type == ElementType::kHalf) {
      const auto h = floatToHalf(f);
      std::memcpy(&b[k * 2], &h, 2);
    } else if (type == ElementType::kBool)
      b[k] = std::byte(r() & 1);
    else {
      const auto v = static_cast<std::uint64_t>(r());
      std::memcpy(&b[k * sizeOf(type)], &v, sizeOf(type));
    }
  }
  return b;
}

constexpr ElementType kTypes[] = {ElementType::kFloat,  ElementType::kHalf,  ElementType::kInt32,
                                  ElementType::kBool,   ElementType::kInt64, ElementType::kUInt8,
                                  ElementType::kUInt32, ElementType::kInt16, ElementType::kUInt16,
                                  ElementType::kInt8};

/// Which NaN an operation gives is not defined, so that floats stay floats; bools are 0 or 1.
bool mayBitcast(ElementType from, ElementType to) {
  const auto isInteger = [](ElementType t) {
    return t != ElementType::kBool && t < ElementType::kHalf;
  };
  if (from == ElementType::kHalf) return to == ElementType::kInt16;
  return isInteger(from) && isInteger(to) && sizeOf(from) == sizeOf(to);
}

/// A random program over one input of each type and a few constants, several outputs.
ExprProgram randomProgram(std::mt19937& r, std::size_t length) {
  ExprBuilder b({std::begin(kTypes), std::end(kTypes)});
  std::vector<std::int32_t> values;
  for (std::size_t i = 0; i < std::size(kTypes); ++i) values.push_back(b.input(i));
  for (auto t : kTypes) values.push_back(b.constantFrom(t, r() % 2 ? 3 : 0));
  values.push_back(b.constantFrom(ElementType::kFloat, r() % 2 ? -0.0 : 0.5));
  const auto pick = [&] { return values[r() % values.size()]; };
  while (values.size() < length + 2 * std::size(kTypes) + 1) {
    const auto op = static_cast<Op>(r() % (expr::kOpCount));
    const std::int32_t x = pick();
    try {
      if (op == Op::kCast || r() % 6 == 0) {
        values.push_back(b.cast(x, kTypes[r() % std::size(kTypes)]));
      } else if (op == Op::kBitcast) {
        const auto to = kTypes[r() % std::size(kTypes)];
        if (mayBitcast(b.typeOf(x), to)) values.push_back(b.bitcast(x, to));
      } else if (op == Op::kReducePrecision) {
        values.push_back(b.reducePrecision(x, 5, 7));
      } else if (expr::numOperands(op) == 1) {
        values.push_back(b.apply(op, {x}));
      } else if (expr::numOperands(op) == 2) {
        values.push_back(b.apply(op, {x, pick()}));
      } else if (expr::numOperands(op) == 3) {
        values.push_back(b.apply(op, {x, pick(), pick()}));
      }
    } catch (const std::invalid_argument&) {  // types that do not go together
    }
  }
  for (int k = 0; k < 4; ++k) b.output(values[values.size() - 1 - (r() % 8)]);
  return b.build();
}

/// Runs every instruction as a program of its own and stores the results in between.
std::vector<Bytes> stepByStep(const ExprProgram& p, const std::vector<Bytes>& inputs,
                              std::size_t n) {
  std::vector<Bytes> values = inputs;
  for (const auto& i : p.instructions()) {
    std::vector<ElementType> types;
    std::vector<Bytes> operands;
    for (int a = 0; a < expr::numOperands(i.op); ++a) {
      const auto v = i.args[static_cast<std::size_t>(a)];
      types.push_back(p.typeOf(v));
      operands.push_back(values[static_cast<std::size_t>(v)]);
    }
    if (types.empty()) {
      types.push_back(ElementType::kFloat);
      operands.push_back(inputs[0]);
    }
    ExprBuilder b(types);
    std::int32_t v = 0;
    if (i.op == Op::kConstant)
      v = b.constant(i.type, i.immediate);
    else if (i.op == Op::kCast)
      v = b.cast(0, i.type);
    else if (i.op == Op::kBitcast)
      v = b.bitcast(0, i.type);
    else if (i.op == Op::kReducePrecision)
      v = b.reducePrecision(0, static_cast<int>(i.immediate / 256),
                            static_cast<int>(i.immediate % 256));
    else {
      std::vector<std::int32_t> args;
      for (std::size_t a = 0; a < types.size(); ++a) args.push_back(static_cast<std::int32_t>(a));
      v = b.apply(i.op, args);
    }
    b.output(v);
    values.push_back(run(b.build(), operands, n));
  }
  return values;
}

/// NaNs are one value: which payload survives depends on the order of operands.
bool same(const Bytes& a, const Bytes& b, ElementType type) {
  for (std::size_t k = 0; k * sizeOf(type) < a.size(); ++k) {
    if (std::memcmp(&a[k * sizeOf(type)], &b[k * sizeOf(type)], sizeOf(type)) == 0) continue;
    if (type == ElementType::kFloat) {
      float x = 0;
      float y = 0;
      std::memcpy(&x, &a[k * 4], 4);
      std::memcpy(&y, &b[k * 4], 4);
      if (std::isnan(x) && std::isnan(y)) continue;
    }
    if (type == ElementType::kHalf) {
      std::uint16_t x = 0;
      std::uint16_t y = 0;
      std::memcpy(&x, &a[k * 2], 2);
      std::memcpy(&y, &b[k * 2], 2);
      if ((x & 0x7fff) > 0x7c00 && (y & 0x7fff) > 0x7c00) continue;
    }
    return false;
  }
  return true;
}
}  // namespace

TEST(random_programs_equal_their_steps) {
  std::mt19937 r(5);
  constexpr std::size_t kN = 1100;
  for (int trial = 0; trial < 200; ++trial) {
    const ExprProgram p = randomProgram(r, 4 + static_cast<std::size_t>(trial));
    std::vector<Bytes> inputs;
    for (auto t : kTypes) inputs.push_back(random(t, kN, r));
    const auto values = stepByStep(p, inputs, kN);
    const ExprProgram saved = ExprProgram::fromIntegers(p.toIntegers());
    CHECK(saved.instructions() == p.instructions() && saved.outputs() == p.outputs());
    for (std::size_t j = 0; j < p.numOutputs(); ++j) {
      const auto type = p.outputTypes()[j];
      const auto& want = values[static_cast<std::size_t>(p.outputs()[j])];
      if (!same(run(saved, inputs, kN, j), want, type))
        check::fail(__FILE__, __LINE__, "output ", j, " differs in\n", p.toString());
    }
  }
}

/// Sums, differences and products with an input or one number, in either order.
TEST(runs_of_arithmetic_equal_their_steps) {
  constexpr ElementType kFloat = ElementType::kFloat;
  std::mt19937 r(11);
  for (int trial = 0; trial < 400; ++trial) {
    ExprBuilder b({kFloat, kFloat, kFloat});
    std::int32_t x = b.input(0);
    for (int step = 0; step < 2 + trial % 6; ++step) {
      const Op op = std::array{Op::kAdd, Op::kSubtract, Op::kMultiply}[r() % 3];
      const std::int32_t other = r() % 2 == 0 ? b.input(static_cast<int>(1 + r() % 2))
                                              : b.constantFrom(kFloat, 0.25 + r() % 5);
      x = r() % 2 == 0 ? b.apply(op, {x, other}) : b.apply(op, {other, x});
      if (r() % 4 == 0) b.output(x);
    }
    b.output(x);
    const ExprProgram p = b.build();
    std::vector<Bytes> inputs;
    for (int k = 0; k < 3; ++k) inputs.push_back(random(kFloat, 333, r));
    const std::vector<bool> uniform{false, false, trial % 2 == 0};
    if (uniform[2])
      for (std::size_t k = 4; k < inputs[2].size(); ++k) inputs[2][k] = inputs[2][k - 4];
    const auto values = stepByStep(p, inputs, 333);
    for (std::size_t j = 0; j < p.numOutputs(); ++j)
      CHECK(same(run(p, inputs, 333, j, uniform), values[static_cast<std::size_t>(p.outputs()[j])],
                 kFloat));
  }
}

/// Forty values are live at once: more than registers hold, so that some lie on the stack.
TEST(chains_hold_any_number_of_values) {
  std::mt19937 r(9);
  for (const auto type : {ElementType::kFloat, ElementType::kInt32}) {
    ExprBuilder b({type});
    std::vector<std::int32_t> values;
    for (int k = 0; k < 40; ++k)
      values.push_back(b.apply(Op::kAdd, {b.input(0), b.constantFrom(type, k)}));
    std::int32_t sum = values[0];
    for (std::size_t k = 0; k < 20; ++k)
      sum = b.apply(Op::kSubtract, {b.apply(Op::kMultiply, {values[k], values[39 - k]}), sum});
    b.output(sum);
    const ExprProgram p = b.build();
    const std::vector<Bytes> inputs{random(type, 700, r)};
    CHECK(same(run(p, inputs, 700), stepByStep(p, inputs, 700).back(), type));
  }
}

/// 16-bit integers seen as bfloat16 numbers, before and after other operations.
TEST(small_integers_may_be_bfloat16) {
  std::mt19937 r(13);
  ExprBuilder b({ElementType::kInt16, ElementType::kUInt16});
  const auto seen = b.bitcast(b.input(0), ElementType::kUInt16);
  const auto x = b.apply(Op::kFromBFloat16, {seen});
  const auto y = b.apply(Op::kFromBFloat16, {b.apply(Op::kBitwiseXor, {b.input(1), seen})});
  const auto sum = b.apply(Op::kAdd, {b.apply(Op::kNegate, {x}), y});
  const auto stored = b.apply(Op::kToBFloat16, {sum});
  b.output(b.bitcast(stored, ElementType::kInt16));
  b.output(b.apply(Op::kFromBFloat16, {stored}));
  b.output(b.apply(Op::kToBFloat16, {b.apply(Op::kNegate, {x})}));  // signalling NaNs stay so
  const ExprProgram p = b.build();
  const std::vector<Bytes> inputs{random(ElementType::kInt16, 700, r),
                                  random(ElementType::kUInt16, 700, r)};
  const auto values = stepByStep(p, inputs, 700);
  CHECK(same(run(p, inputs, 700, 1), values[static_cast<std::size_t>(p.outputs()[1])],
             ElementType::kFloat));
  CHECK(run(p, inputs, 700, 2) == values[static_cast<std::size_t>(p.outputs()[2])]);
}

/// One vector or less, whole lines of a strip, and slightly more: no element is left out.
TEST(every_length_gives_the_same_elements) {
  std::mt19937 r(7);
  for (int trial = 0; trial < 20; ++trial) {
    const ExprProgram p = randomProgram(r, 30);
    std::vector<Bytes> inputs;
    for (auto t : kTypes) inputs.push_back(random(t, 300, r));
    for (std::size_t j = 0; j < p.numOutputs(); ++j) {
      const Bytes whole = run(p, inputs, 300, j);
      for (std::size_t n : {1, 3, 8, 15, 16, 17, 127, 128, 129, 143, 257}) {
        const Bytes part = run(p, inputs, n, j);
        CHECK(std::equal(part.begin(), part.end(), whole.begin()));
      }
    }
  }
}

TEST(uniform_inputs_equal_spread_ones) {
  std::mt19937 r(6);
  constexpr std::size_t kN = 700;
  for (int trial = 0; trial < 60; ++trial) {
    const ExprProgram p = randomProgram(r, 20);
    std::vector<Bytes> inputs;
    std::vector<Bytes> spread;
    std::vector<bool> uniform;
    for (auto t : kTypes) {
      uniform.push_back(r() % 2 == 0);
      inputs.push_back(random(t, kN, r));
      spread.push_back(inputs.back());
      for (std::size_t k = 0; uniform.back() && k < kN; ++k)
        std::memcpy(&spread.back()[k * sizeOf(t)], inputs.back().data(), sizeOf(t));
    }
    for (std::size_t j = 0; j < p.numOutputs(); ++j)
      if (!same(run(p, inputs, kN, j, uniform), run(p, spread, kN, j), p.outputTypes()[j]))
        check::fail(__FILE__, __LINE__, "output ", j, " differs in\n", p.toString());
  }
}

/// (a - -a) * a + a, or a random program.
TEST(rows_equal_calls_of_one_row_each) {
  std::mt19937 r(9);
  constexpr std::int64_t kRows = 5;
  for (int trial = 0; trial < 120; ++trial) {
    ExprBuilder builder({std::begin(kTypes), std::end(kTypes)});
    const auto a = builder.input(0);
    const auto x = builder.apply(Op::kSubtract, {a, builder.apply(Op::kNegate, {a})});
    builder.output(builder.apply(Op::kAdd, {builder.apply(Op::kMultiply, {x, a}), a}));
    const ExprProgram p = trial % 2 == 0 ? builder.build() : randomProgram(r, 6);
    const auto n = std::vector<std::int64_t>{16, 48, 96, 33, 5}[r() % 5];
    std::vector<Bytes> inputs;
    std::vector<bool> uniform;
    std::vector<std::int64_t> row_bytes;
    for (auto t : kTypes) {
      uniform.push_back(r() % 3 == 0);
      const auto bytes = static_cast<std::int64_t>(sizeOf(t));
      row_bytes.push_back(r() % 3 == 0 ? 0 : uniform.back() ? bytes : (n + 2) * bytes);
      inputs.push_back(random(t, static_cast<std::size_t>(kRows * (n + 2)), r));
    }
    std::vector<Bytes> outputs;
    for (auto t : p.outputTypes()) {
      row_bytes.push_back((n + 1) * static_cast<std::int64_t>(sizeOf(t)));
      outputs.emplace_back(static_cast<std::size_t>(kRows * row_bytes.back()));
    }
    std::vector<const std::byte*> in;
    std::vector<std::byte*> out;
    for (const auto& b : inputs) in.push_back(b.data());
    for (auto& b : outputs) out.push_back(b.data());
    ExprEvaluator(p, uniform).runRows(in, out, n, kRows, row_bytes);
    for (std::int64_t row = 0; row < kRows; ++row) {
      std::vector<Bytes> of_row;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        of_row.emplace_back(inputs[i].begin() + row * row_bytes[i], inputs[i].end());
      for (std::size_t j = 0; j < outputs.size(); ++j) {
        const auto want = run(p, of_row, static_cast<std::size_t>(n), j, uniform);
        const auto* got = out[j] + row * row_bytes[inputs.size() + j];
        if (!same(Bytes(got, got + want.size()), want, p.outputTypes()[j]))
          check::fail(__FILE__, __LINE__, "row ", row, " of output ", j, " differs in\n",
                      p.toString());
      }
    }
  }
}

/// All outputs or a few: then some may be written before others have read their inputs.
TEST(outputs_may_take_over_inputs) {
  std::mt19937 r(8);
  constexpr std::size_t kN = 1500;
  for (int trial = 0; trial < 200; ++trial) {
    const unsigned of = 1 + static_cast<unsigned>(trial) % 4;
    const ExprProgram p = randomProgram(r, 12);
    std::vector<Bytes> inputs;
    for (auto t : kTypes) inputs.push_back(random(t, kN, r));
    std::vector<Bytes> want;
    for (std::size_t j = 0; j < p.numOutputs(); ++j) want.push_back(run(p, inputs, kN, j));
    std::vector<Bytes> out;
    std::vector<const std::byte*> in;
    std::vector<std::byte*> o;
    std::vector<bool> taken(inputs.size());
    for (auto& b : inputs) in.push_back(b.data());
    out.reserve(p.numOutputs());
    for (auto t : p.outputTypes()) {
      std::byte* where = nullptr;
      for (std::size_t i = 0; i < inputs.size() && !where; ++i) {
        if (taken[i] || sizeOf(kTypes[i]) != sizeOf(t) || r() % of != 0) continue;
        taken[i] = true;
        where = inputs[i].data();
      }
      if (!where) where = out.emplace_back(kN * sizeOf(t)).data();
      o.push_back(where);
    }
    ExprEvaluator(p).run(in, o, kN);
    for (std::size_t j = 0; j < p.numOutputs(); ++j) {
      const auto bytes = want[j].size();
      if (!same(Bytes(o[j], o[j] + bytes), want[j], p.outputTypes()[j]))
        check::fail(__FILE__, __LINE__, "output ", j, " differs in place in\n", p.toString());
    }
  }
}

TEST(equal_values_are_one_and_dead_ones_are_dropped) {
  using namespace popops::expr;
  const Expr shared = Exp(_1 * _2);
  const auto p = popops::internal::compileExpr({shared + shared, Exp(_1 * _2) - 1.0f},
                                               {poplar::FLOAT, poplar::FLOAT, poplar::FLOAT});
  CHECK_EQ(p.instructions().size(), 5u);  // mul, exp, add, constant, sub
  CHECK(!p.usesInput(2));
  CHECK(popops::internal::compileExpr({_2 + _1}, {poplar::INT, poplar::INT}).isBinary(Op::kAdd));
  CHECK(!popops::internal::compileExpr({_2 - _1}, {poplar::INT, poplar::INT})
             .isBinary(Op::kSubtract));
  CHECK(popops::internal::compileExpr({_1}, {poplar::INT}).isInput(0));
}

TEST(long_chains_need_few_registers_and_no_stack) {
  using namespace popops::expr;
  Expr e = _1;
  for (int k = 0; k < 20000; ++k) e = Add(Mul(e, Const(1.0f)), e);  // a tree of 2^20000 leaves
  const auto p = popops::internal::compileExpr({e}, {poplar::FLOAT});
  CHECK(ExprEvaluator(p).numRegisters() <= 3);
  Expr chain = _1;
  for (int k = 0; k < 200000; ++k) chain = Neg(chain);
  CHECK_EQ(popops::internal::compileExpr({chain}, {poplar::FLOAT}).instructions().size(), 200000u);
}

TEST(half_rounds_after_each_operation) {
  using namespace popops::expr;
  const auto p = popops::internal::compileExpr({(_1 + _2) - _1}, {poplar::HALF, poplar::HALF});
  Bytes a(2);
  Bytes b(2);
  const auto big = floatToHalf(2048.0f);
  const auto one = floatToHalf(1.0f);
  std::memcpy(a.data(), &big, 2);
  std::memcpy(b.data(), &one, 2);
  const Bytes c = run(p, {a, b}, 1);
  std::uint16_t got = 7;
  std::memcpy(&got, c.data(), 2);
  CHECK_EQ(halfToFloat(got), 0.0f);  // 2049 is not a half; in float the result would be 1
}

TEST(halves_that_are_passed_on_keep_their_bits) {
  ExprBuilder b({ElementType::kHalf});
  b.output(b.input(0));
  b.output(b.apply(Op::kAdd, {b.input(0), b.input(0)}));
  const ExprProgram p = b.build();
  const std::uint16_t signalling[] = {0x7d01, 0xfc02, 0x3c00};
  for (const bool uniform : {false, true}) {
    const Bytes in(reinterpret_cast<const std::byte*>(signalling),
                   reinterpret_cast<const std::byte*>(signalling + 3));
    const Bytes out = run(p, {in}, 3, 0, {uniform});
    for (std::size_t k = 0; k < 3; ++k)
      CHECK(std::memcmp(&out[2 * k], &signalling[uniform ? 0 : k], 2) == 0);
  }
}

TEST(wrong_programs_are_refused_with_a_reason) {
  using namespace popops::expr;
  CHECK_THROWS(popops::internal::compileExpr({_1 + _2}, {poplar::FLOAT, poplar::INT}),
               "add] needs");
  CHECK_THROWS(popops::internal::compileExpr({_3}, {poplar::FLOAT}), "index below 1");
  CHECK_THROWS(popops::internal::compileExpr({Tanh(_1)}, {poplar::INT}), "tanh] needs");
  CHECK_THROWS(ExprProgram::fromIntegers({}), "damaged");
  CHECK_THROWS(ExprProgram::fromIntegers({1, 1, 1, 1, 10, 5000, 0}), "");
  auto p = popops::internal::compileExpr({_1 + 1.0f}, {poplar::HALF});
  CHECK(p.outputTypes()[0] == ElementType::kHalf);  // the constant takes the tensor's type
  auto integers = p.toIntegers();
  for (std::size_t cut = 0; cut < integers.size(); ++cut)
    CHECK_THROWS(ExprProgram::fromIntegers(
                     {integers.begin(), integers.begin() + static_cast<std::ptrdiff_t>(cut)}),
                 "");
}
