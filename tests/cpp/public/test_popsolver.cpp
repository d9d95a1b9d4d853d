// Small integer programs, against searches through all values.
#include <functional>
#include <optional>
#include <popsolver/Model.hpp>
#include <sstream>
#include <vector>

#include "Check.hpp"

using popsolver::DataType;
using popsolver::Model;
using popsolver::Variable;

namespace {

/// The result of an operation on two constants; none where the model has no solution.
std::optional<std::uint64_t> ofConstants(
    DataType a, DataType b, const std::function<Variable(Model&, Variable, Variable)>& op) {
  Model m;
  const auto result = op(m, m.addConstant(a), m.addConstant(b));
  const auto s = m.minimize(result);
  if (!s.validSolution()) return std::nullopt;
  return *s[result];
}

}  // namespace

TEST(operations_on_constants_are_those_of_integers) {
  for (std::uint64_t a = 0; a < 9; ++a) {
    for (std::uint64_t b = 0; b < 9; ++b) {
      const auto is = [&](std::optional<std::uint64_t> expected, auto op) {
        CHECK(ofConstants(a, b, op) == expected);
      };
      const auto divides = [&](std::uint64_t x) {
        return b == 0 ? std::nullopt : std::optional<std::uint64_t>(x);
      };
      const auto safe = b == 0 ? 1 : b;
      is(a + b, [](Model& m, Variable x, Variable y) { return m.sum({x, y}); });
      is(a * b, [](Model& m, Variable x, Variable y) { return m.product({x, y}); });
      is(std::max(a, b), [](Model& m, Variable x, Variable y) { return m.max({x, y}); });
      is(std::min(a, b), [](Model& m, Variable x, Variable y) { return m.min({x, y}); });
      is(divides(a / safe), [](Model& m, Variable x, Variable y) { return m.floordiv(x, y); });
      is(divides((a + safe - 1) / safe),
         [](Model& m, Variable x, Variable y) { return m.ceildiv(x, y); });
      is(divides(a % safe), [](Model& m, Variable x, Variable y) { return m.mod(x, y); });
      is(a < b ? std::nullopt : std::optional<std::uint64_t>(a - b),
         [](Model& m, Variable x, Variable y) { return m.sub(x, y); });
      is(a < b, [](Model& m, Variable x, Variable y) { return m.reifiedLess(x, y); });
      is(a <= b, [](Model& m, Variable x, Variable y) { return m.reifiedLessOrEqual(x, y); });
      is(a == b, [](Model& m, Variable x, Variable y) { return m.reifiedEqual(x, y); });
      is(a != 0 || b != 0, [](Model& m, Variable x, Variable y) { return m.booleanOr(x, y); });
      is(a != 0 && b != 0, [](Model& m, Variable x, Variable y) { return m.booleanAnd(x, y); });
      is(a == 0, [](Model& m, Variable x, Variable) { return m.booleanNot(x); });
    }
  }
}

TEST(the_largest_values_do_not_overflow) {
  const auto most = DataType::max();
  const auto sum = [](Model& m, Variable x, Variable y) { return m.sum({x, y}); };
  CHECK(!ofConstants(most, DataType{1}, sum));
  CHECK(ofConstants(most, DataType{0}, sum) == *most);
  const auto both = [](Model& m, Variable x, Variable y) { return m.booleanAnd(x, y); };
  CHECK(ofConstants(most, most, both) == 1U);
  const auto product = [](Model& m, Variable x, Variable y) { return m.product({x, y}); };
  CHECK(!ofConstants(most, DataType{2}, product));
}

TEST(objectives_are_minimised_in_their_order) {
  Model m;
  const auto a = m.addVariable(2, 9, "a");
  const auto b = m.addVariable(1, 9);
  m.lessOrEqual(DataType{8}, m.sum({a, b}));
  m.less(a, DataType{7});
  const auto s = m.minimize({a, b});
  CHECK_EQ(s[a], DataType{2});
  CHECK_EQ(s[b], DataType{6});
  const auto t = m.minimize({b, a});
  CHECK_EQ(t[b], DataType{2});
  CHECK_EQ(t[a], DataType{6});
  CHECK_EQ(m.getDebugName(a), std::string("a"));
  m.less(DataType{6}, a);
  CHECK(!m.minimize(a).validSolution());
}

TEST(unbounded_variables_are_found_by_their_constraints) {
  Model m;
  const auto a = m.addVariable();
  const auto quotient = m.ceildiv(a, m.addConstant(7));
  m.equal(quotient, DataType{5});
  const auto s = m.minimize(a);
  CHECK_EQ(s[a], DataType{29});
  m.factorOf(a, m.addConstant(10));
  CHECK_EQ(m.minimize(a)[a], DataType{30});
}

TEST(a_cost_that_is_called_is_minimised_over_all_values) {
  for (unsigned total = 20; total < 40; ++total) {
    Model m;
    const auto rows = m.addVariable(1, 12);
    const auto columns = m.addVariable(1, 12);
    const auto groups = m.ceildiv(m.addConstant(total), m.product({rows, columns}));
    const auto cost = [](unsigned r, unsigned c, unsigned g) { return 7 * r + 3 * c * c + 11 * g; };
    const auto cycles = m.call<unsigned>(
        {rows, columns, groups},
        [&](const std::vector<unsigned>& v) -> std::optional<DataType> {
          if (v[0] == v[1]) return std::nullopt;
          return DataType{cost(v[0], v[1], v[2])};
        },
        "cycles");
    std::uint64_t best = ~0ULL;
    for (unsigned r = 1; r <= 12; ++r)
      for (unsigned c = 1; c <= 12; ++c)
        if (r != c) best = std::min<std::uint64_t>(best, cost(r, c, (total + r * c - 1) / (r * c)));
    const auto s = m.minimize(cycles);
    CHECK_EQ(*s[cycles], best);
    CHECK_EQ(*s[cycles], cost(s[rows].getAs<unsigned>(), s[columns].getAs<unsigned>(),
                              s[groups].getAs<unsigned>()));
    CHECK(s.constraintsEvaluated().call > 0);
  }
}

TEST(the_least_divisor_of_a_quotient) {
  for (unsigned divisor = 1; divisor < 30; ++divisor) {
    Model m;
    const auto b = m.addConstant(divisor);
    const auto c = m.ceildivConstrainDivisor(m.addConstant(49), b);
    const auto up = [](unsigned x, unsigned y) { return (x + y - 1) / y; };
    const bool is_least = divisor == 1 || up(49, divisor) != up(49, divisor - 1);
    const auto s = m.minimize(c);
    CHECK_EQ(s.validSolution(), is_least);
    if (is_least) CHECK_EQ(s[c], DataType{up(49, divisor)});
  }
}

TEST(priority_groups_have_an_order) {
  Model m;
  const auto first = m.addPriorityGroup();
  const auto a = m.addVariable(0, 100);
  m.setPriorityGroup(a, first);
  m.prioritiseOver(first, m.getDefaultPriorityGroup());
  const auto b = m.addVariable(0, 3);
  m.less(b, a);
  CHECK_EQ(m.minimize(a)[a], DataType{1});
  m.prioritiseOver(m.getDefaultPriorityGroup(), first);
  CHECK_THROWS(m.minimize(a), "cycle");
}

TEST(values_refuse_what_they_cannot_hold) {
  CHECK_THROWS(DataType{-1}, "negative");
  CHECK_THROWS(DataType{-0.5}, "[0, 2^64)");
  CHECK_THROWS(DataType{300}.getAs<unsigned char>(), "300");
  CHECK_EQ(DataType{300}.getAs<unsigned short>(), 300);
  std::istringstream in("42");
  DataType x;
  in >> x;
  CHECK_EQ(x++, DataType{42});
  CHECK_EQ(*x % DataType{10}, DataType{3});
  Model m;
  CHECK_THROWS(m.sum({}), "one variable");
}
