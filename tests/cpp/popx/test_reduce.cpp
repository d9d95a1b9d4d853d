#include <cmath>
#include <limits>
#include <random>

#include "Check.hpp"
#include "engine/Half.hpp"
#include "engine/kernels/reduce/ReduceArg.hpp"
#include "engine/simd/VectorOps.hpp"
#include "popops/Expr.hpp"
#include "popops/StepRunner.hpp"
#include "popops/internal/ExprCompile.hpp"
#include "popx/Reduce.hpp"

using namespace step_runner;
namespace pe = popops::expr;

namespace {

const float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

pe::PlaceHolder at(unsigned i) { return pe::PlaceHolder(i); }

/// The body of jnp.argmax: accumulators 1 (value) and 2 (index), new 3 and 4.
std::vector<pe::Expr> argmaxBody() {
  const pe::Expr pick = pe::Or(pe::Gt(at(1), at(3)), pe::NotEqual(at(1), at(1)));
  const pe::Expr index = pe::Or(pick, pe::And(pe::Equal(at(1), at(3)), pe::Lt(at(2), at(4))));
  return {pe::Select(at(1), at(3), pick), pe::Select(at(2), at(4), index)};
}

StepDesc bodyStep(const std::vector<pe::Expr>& body, const std::vector<poplar::Type>& types,
                  const std::vector<OperandDesc>& operands, Shape dims) {
  StepDesc step;
  step.kernel = "popx.reduce";
  step.operands = operands;
  std::vector<poplar::Type> both = types;
  both.insert(both.end(), types.begin(), types.end());
  step.attributes.set("dims", dims)
      .set("expr", popops::internal::compileExpr(body, both).toIntegers());
  step.attributes.set("wide", std::int64_t{operands[0].shape.front() % 2});  // either is right
  return step;
}

struct ArgResult {
  float value;
  std::int32_t index;
};

ArgResult argmaxLoop(const std::vector<float>& x, float init) {
  ArgResult r{init, 0};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool pick = r.value > x[i] || std::isnan(r.value);
    const auto index = static_cast<std::int32_t>(i);
    const bool keep = pick || (r.value == x[i] && r.index < index);
    r = {pick ? r.value : x[i], keep ? r.index : index};
  }
  return r;
}

/// argmax over dimension 1 of [rows, n, 1], with a random layout if `strange` is not null.
void checkArgmax(std::int64_t rows, std::int64_t n, int values, bool nans, std::mt19937* strange) {
  std::mt19937 random(static_cast<unsigned>(n));
  Array<float> in(ElementType::kFloat, Access::kRead, {rows, n}, strange);
  Array<std::int32_t> index(ElementType::kInt32, Access::kRead, {rows, n}, strange);
  Array<float> value_out(ElementType::kFloat, Access::kWrite, {rows});
  Array<std::int32_t> index_out(ElementType::kInt32, Access::kWrite, {rows});
  Array<float> value_init(ElementType::kFloat, Access::kRead, {});
  Array<std::int32_t> index_init(ElementType::kInt32, Access::kRead, {});
  value_init.memory = {-kInf};
  each({rows, n}, [&](const Shape& i) {
    in.at(i) = static_cast<float>(static_cast<int>(random() % values)) - 3;
    if (nans && random() % n < 3) in.at(i) = kNan;
    if (random() % 7 == 0) in.at(i) = -kInf;
    index.at(i) = static_cast<std::int32_t>(i[1]);
  });
  run(bodyStep(
          argmaxBody(), {poplar::FLOAT, poplar::INT},
          {in.desc, index.desc, value_out.desc, index_out.desc, value_init.desc, index_init.desc},
          {1}),
      {in.pointer(), index.pointer(), value_out.pointer(), index_out.pointer(),
       value_init.pointer(), index_init.pointer()});
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<float> row;
    for (std::int64_t i = 0; i < n; ++i) row.push_back(in.at({r, i}));
    const ArgResult want = argmaxLoop(row, -kInf);
    CHECK_EQ(index_out.at({r}), want.index);
    CHECK_NEAR(value_out.at({r}), want.value, 0);
  }
}

}  // namespace

TEST(argmax_is_recognised_and_a_changed_body_is_not) {
  const std::vector<poplar::Type> types{poplar::FLOAT, poplar::INT, poplar::FLOAT, poplar::INT};
  CHECK(ipujax::engine::argReducerOf(popops::internal::compileExpr(argmaxBody(), types)) ==
        ipujax::engine::reduction::Reducer::kMaximum);
  auto last = argmaxBody();
  last[1] = pe::Select(at(2), at(4),
                       pe::Or(pe::Or(pe::Gt(at(1), at(3)), pe::NotEqual(at(1), at(1))),
                              pe::And(pe::Equal(at(1), at(3)), pe::Gt(at(2), at(4)))));
  CHECK(ipujax::engine::argReducerOf(popops::internal::compileExpr(last, types)) == std::nullopt);
}

TEST(argmax_matches_a_loop) {
  checkArgmax(1, 200000, 1000, false, nullptr);
  checkArgmax(3, 70000, 1 << 30, true, nullptr);
  checkArgmax(100, 10, 4, true, nullptr);
  checkArgmax(100, 10, 4, false, nullptr);
  std::mt19937 strange(3);
  for (int i = 0; i < 20; ++i) {
    checkArgmax(1 + i % 3, 5 + 400 * i, 9, i % 2 == 0, &strange);
    checkArgmax(600, 1 + i, 9, i % 2 == 0, &strange);
  }
}

TEST(argmax_of_halves_matches_a_loop) {
  using ipujax::engine::floatToHalf;
  std::mt19937 random(2);
  for (std::int64_t n : {10, 3000}) {
    Array<std::uint16_t> in(ElementType::kHalf, Access::kRead, {3, n});
    Array<std::int32_t> index(ElementType::kInt32, Access::kRead, {3, n});
    Array<std::uint16_t> value_out(ElementType::kHalf, Access::kWrite, {3});
    Array<std::int32_t> index_out(ElementType::kInt32, Access::kWrite, {3});
    Array<std::uint16_t> value_init(ElementType::kHalf, Access::kRead, {});
    Array<std::int32_t> index_init(ElementType::kInt32, Access::kRead, {});
    value_init.memory = {floatToHalf(-kInf)};
    std::vector<std::vector<float>> rows(3);
    each({3, n}, [&](const Shape& i) {
      const float v = static_cast<float>(random() % 40) - 20;
      rows[static_cast<std::size_t>(i[0])].push_back(v);
      in.at(i) = floatToHalf(v);
      index.at(i) = static_cast<std::int32_t>(i[1]);
    });
    rows[1][7] = kNan;
    in.at({1, 7}) = floatToHalf(kNan);
    run(bodyStep(
            argmaxBody(), {poplar::HALF, poplar::INT},
            {in.desc, index.desc, value_out.desc, index_out.desc, value_init.desc, index_init.desc},
            {1}),
        {in.pointer(), index.pointer(), value_out.pointer(), index_out.pointer(),
         value_init.pointer(), index_init.pointer()});
    for (std::int64_t r = 0; r < 3; ++r) {
      const ArgResult want = argmaxLoop(rows[static_cast<std::size_t>(r)], -kInf);
      CHECK_EQ(index_out.at({r}), want.index);
      CHECK_EQ(std::isnan(want.value) ? std::uint16_t{0} : value_out.at({r}),
               std::isnan(want.value) ? std::uint16_t{0} : floatToHalf(want.value));
    }
  }
}

/// (a, b) . (c, d) = (a c, b c + d): associative, not commutative: the order must be kept.
TEST(a_body_that_does_not_commute_keeps_the_order) {
  const std::vector<pe::Expr> body{pe::Mul(at(1), at(3)), pe::Add(pe::Mul(at(2), at(3)), at(4))};
  std::mt19937 random(1);
  for (Shape shape :
       {Shape{1000}, Shape{70, 9}, Shape{3, 5, 100}, Shape{200000}, Shape{2, 90000}, Shape{7, 9},
        Shape{3, 5, 4}, Shape{15, 64}, Shape{17, 3}, Shape{1, 1}, Shape{0, 4}}) {
    for (int layout = 0; layout < 3; ++layout) {
      const bool keep_last = shape.size() > 1;
      const std::int64_t lanes = keep_last ? shape.back() : 1;
      Shape dims;
      for (std::size_t d = 0; d + (keep_last ? 1 : 0) < shape.size(); ++d) {
        dims.push_back(static_cast<std::int64_t>(d));
      }
      const Shape kept = keep_last ? Shape{lanes} : Shape{};
      std::mt19937* strange = layout ? &random : nullptr;
      const ElementType type = ElementType::kUInt32;
      Array<std::uint32_t> a(type, Access::kRead, shape, strange);
      Array<std::uint32_t> b(type, Access::kRead, shape, strange);
      Array<std::uint32_t> c(type, Access::kWrite, kept);
      Array<std::uint32_t> d(type, Access::kWrite, kept);
      Array<std::uint32_t> init_a(type, Access::kRead, {});
      Array<std::uint32_t> init_b(type, Access::kRead, {});
      init_a.memory = {3};
      init_b.memory = {5};
      for (auto* m : {&a.memory, &b.memory}) {
        for (auto& v : *m) v = random() | 1;
      }
      std::vector<std::uint32_t> want_a(static_cast<std::size_t>(lanes), 3);
      std::vector<std::uint32_t> want_b(static_cast<std::size_t>(lanes), 5);
      each(shape, [&](const Shape& i) {
        const auto lane = static_cast<std::size_t>(keep_last ? i.back() : 0);
        want_a[lane] *= a.at(i);
        want_b[lane] = want_b[lane] * a.at(i) + b.at(i);
      });
      run(bodyStep(body, {poplar::UNSIGNED_INT, poplar::UNSIGNED_INT},
                   {a.desc, b.desc, c.desc, d.desc, init_a.desc, init_b.desc}, dims),
          {a.pointer(), b.pointer(), c.pointer(), d.pointer(), init_a.pointer(), init_b.pointer()});
      for (std::int64_t l = 0; l < lanes; ++l) {
        CHECK_EQ(c.memory[l], want_a[l]);
        CHECK_EQ(d.memory[l], want_b[l]);
      }
    }
  }
}
