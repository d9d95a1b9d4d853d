#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "Check.hpp"
#include "engine/kernels/sort/SortKeys.hpp"
#include "popops/Expr.hpp"
#include "popops/StepRunner.hpp"
#include "popops/internal/ExprCompile.hpp"
#include "popx/Sort.hpp"

using namespace step_runner;
using ipujax::engine::FloatOrder;
using ipujax::engine::toIntegers;
namespace pe = popops::expr;

namespace {

const float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

/// jax.lax.sort's order of floats.
bool before(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  return a < b;
}

StepDesc sortStep(const std::vector<OperandDesc>& operands, std::int64_t dim) {
  StepDesc step;
  step.kernel = "popx.sort";
  step.operands = operands;
  step.attributes.set("dim", dim);
  return step;
}

template <class T>
void checkKeys(ElementType type, std::int64_t rows, std::int64_t n, bool descending,
               std::mt19937* strange) {
  std::mt19937 random(static_cast<unsigned>(n * 2 + descending));
  Array<T> key(type, Access::kRead, {n, rows}, strange);
  Array<std::uint16_t> value(ElementType::kUInt16, Access::kRead, {n, rows}, strange);
  Array<T> key_out(type, Access::kWrite, {n, rows}, strange);
  Array<std::uint16_t> value_out(ElementType::kUInt16, Access::kWrite, {n, rows}, strange);
  each({n, rows}, [&](const Shape& i) {
    T v = static_cast<T>(static_cast<int>(random() % 1000) - 500);
    if constexpr (std::is_same_v<T, float>) {
      const float odd[] = {kNan, kInf, -kInf, 0.0f, -0.0f, -kNan};
      if (random() % 4 == 0) v = odd[random() % 6];
    }
    key.at(i) = v;
    value.at(i) = static_cast<std::uint16_t>(i[0]);
  });
  StepDesc step = sortStep({key.desc, value.desc, key_out.desc, value_out.desc}, 0);
  step.attributes.set("keys", toIntegers({{0, descending, FloatOrder::kCanonical}}));
  run(step, {key.pointer(), value.pointer(), key_out.pointer(), value_out.pointer()});
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const T x = key.at({descending ? b : a, r});
      const T y = key.at({descending ? a : b, r});
      if constexpr (std::is_same_v<T, float>) return before(x, y);
      return x < y;
    });
    for (std::int64_t i = 0; i < n; ++i) {
      CHECK_EQ(value_out.at({i, r}), static_cast<std::uint16_t>(order[i]));
      const T got = key_out.at({i, r});
      const T want = key.at({order[i], r});
      CHECK(std::memcmp(&got, &want, sizeof(T)) == 0);
    }
  }
}

pe::PlaceHolder at(unsigned i) { return pe::PlaceHolder(i); }

}  // namespace

TEST(keys_of_every_type_sort_stably) {
  std::mt19937 strange(5);
  for (std::int64_t n : {0, 1, 2, 31, 511, 512, 5000}) {
    for (bool down : {false, true}) {
      checkKeys<float>(ElementType::kFloat, 3, n, down, nullptr);
      checkKeys<float>(ElementType::kFloat, 2, n, down, &strange);
      checkKeys<std::int32_t>(ElementType::kInt32, 2, n, down, nullptr);
      checkKeys<std::uint8_t>(ElementType::kUInt8, 2, n, down, nullptr);
      checkKeys<std::int8_t>(ElementType::kInt8, 2, n, down, nullptr);
      checkKeys<std::int16_t>(ElementType::kInt16, 2, n, down, nullptr);
      checkKeys<std::int64_t>(ElementType::kInt64, 2, n, down, nullptr);
      checkKeys<std::uint32_t>(ElementType::kUInt32, 1, n, down, nullptr);
    }
  }
}

TEST(comparators_become_keys_where_they_are_keys) {
  const std::vector<poplar::Type> types(4, poplar::INT);
  const auto keysOf = [&](const pe::Expr& e) {
    return ipujax::engine::sortKeysOf(popops::internal::compileExpr({e}, types));
  };
  const auto plain = keysOf(pe::Lt(at(1), at(2)));
  CHECK(plain && plain->size() == 1 && !(*plain)[0].descending && (*plain)[0].operand == 0);
  const auto swapped = keysOf(pe::Lt(at(4), at(3)));
  CHECK(swapped && (*swapped)[0].descending && (*swapped)[0].operand == 1);
  const auto two =
      keysOf(pe::Or(pe::Lt(at(1), at(2)), pe::And(pe::Equal(at(1), at(2)), pe::Gt(at(3), at(4)))));
  CHECK(two && two->size() == 2 && (*two)[1].descending);
  CHECK(!keysOf(pe::Lt(at(1), at(4))));
  CHECK(!keysOf(pe::Lte(at(1), at(2))));
  CHECK(!keysOf(
      pe::Or(pe::Lt(at(1), at(2)), pe::And(pe::Equal(at(3), at(4)), pe::Gt(at(3), at(4))))));
}

TEST(any_comparator_sorts_stably) {
  // By distance from 7, then nothing: many equal elements.
  const pe::Expr comparator =
      pe::Lt(pe::Abs(pe::Sub(at(1), pe::Const(7))), pe::Abs(pe::Sub(at(2), pe::Const(7))));
  const auto program =
      popops::internal::compileExpr({comparator}, std::vector<poplar::Type>(4, poplar::INT));
  std::mt19937 random(2);
  for (std::int64_t n : {1, 2, 3, 10, 100, 1000, 5001}) {
    Array<std::int32_t> key(ElementType::kInt32, Access::kRead, {2, n}, &random);
    Array<std::int32_t> value(ElementType::kInt32, Access::kRead, {2, n}, &random);
    Array<std::int32_t> key_out(ElementType::kInt32, Access::kWrite, {2, n});
    Array<std::int32_t> value_out(ElementType::kInt32, Access::kWrite, {2, n});
    each({2, n}, [&](const Shape& i) {
      key.at(i) = static_cast<int>(random() % 40);
      value.at(i) = static_cast<int>(i[1]);
    });
    StepDesc step = sortStep({key.desc, value.desc, key_out.desc, value_out.desc}, 1);
    step.attributes.set("expr", program.toIntegers());
    run(step, {key.pointer(), value.pointer(), key_out.pointer(), value_out.pointer()});
    for (std::int64_t r = 0; r < 2; ++r) {
      std::vector<int> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return std::abs(key.at({r, a}) - 7) < std::abs(key.at({r, b}) - 7);
      });
      for (std::int64_t i = 0; i < n; ++i) CHECK_EQ(value_out.at({r, i}), order[i]);
    }
  }
}

TEST(a_comparator_without_meaning_still_gives_a_permutation) {
  const auto program =
      popops::internal::compileExpr({pe::NotEqual(at(1), at(2))}, {poplar::INT, poplar::INT});
  const std::int64_t n = 1000;
  Array<std::int32_t> in(ElementType::kInt32, Access::kRead, {n});
  Array<std::int32_t> out(ElementType::kInt32, Access::kWrite, {n});
  std::iota(in.memory.begin(), in.memory.end(), 0);
  StepDesc step = sortStep({in.desc, out.desc}, 0);
  step.attributes.set("expr", program.toIntegers());
  run(step, {in.pointer(), out.pointer()});
  std::sort(out.memory.begin(), out.memory.end());
  CHECK(out.memory == in.memory);
}

TEST(top_k_orders_nan_first_and_equal_elements_by_index) {
  std::mt19937 random(9);
  for (std::int64_t n : {5, 100, 3000, 20000}) {
    for (std::int64_t k : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5}, n / 2, n}) {
      Array<float> in(ElementType::kFloat, Access::kRead, {2, n}, &random);
      Array<float> out(ElementType::kFloat, Access::kWrite, {2, k});
      Array<std::uint32_t> index(ElementType::kUInt32, Access::kWrite, {2, k});
      for (float& v : in.memory) {
        v = random() % 50 == 0 ? kNan : static_cast<float>(random() % 1000);
      }
      StepDesc step;
      step.kernel = "popops.topk";
      step.operands = {in.desc, out.desc, index.desc};
      step.attributes.set("k", k)
          .set("largest", std::int64_t{1})
          .set("reversed", std::int64_t{0})
          .set("extra", std::string("indices"));
      run(step, {in.pointer(), out.pointer(), index.pointer()});
      for (std::int64_t r = 0; r < 2; ++r) {
        std::vector<std::int64_t> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
          return before(in.at({r, b}), in.at({r, a}));
        });
        for (std::int64_t j = 0; j < k; ++j) {
          CHECK_EQ(index.at({r, j}), static_cast<std::uint32_t>(order[j]));
          CHECK_NEAR(out.at({r, j}), in.at({r, order[j]}), 0);
        }
      }
    }
  }
}
