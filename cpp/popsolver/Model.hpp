#pragma once
#include <cassert>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "popsolver/DataType.hpp"
#include "popsolver/PriorityGroupID.hpp"
#include "popsolver/Variable.hpp"

/// Small integer programs: variables with a range each, constraints between them, and a search for
/// the solution that minimises some of them.
namespace popsolver {

/// How often constraints of each kind were evaluated by a search.
struct ConstraintEvaluationSummary {
  using CountType = std::uint64_t;
  CountType call = 0;
  CountType product = 0;
  CountType sum = 0;
  CountType max = 0;
  CountType min = 0;
  CountType less = 0;
  CountType lessOrEqual = 0;
  CountType unknown = 0;

  CountType total() const {
    return call + product + sum + max + min + less + lessOrEqual + unknown;
  }
  void operator+=(const ConstraintEvaluationSummary& other);
};
std::ostream& operator<<(std::ostream& os, const ConstraintEvaluationSummary& s);

/// The values that a variable may have: min to max, both included.
class Domain {
 public:
  Domain(DataType min, DataType max) : min_(min), max_(max) {}
  DataType min() const { return min_; }
  DataType max() const { return max_; }
  DataType val() const {
    assert(min_ == max_);
    return min_;
  }
  /// One less than the number of values.
  DataType size() const { return max_ - min_; }

  DataType min_;
  DataType max_;
};

class Domains {
 public:
  using iterator = std::vector<Domain>::iterator;
  using const_iterator = std::vector<Domain>::const_iterator;
  Domain& operator[](Variable v) { return domains[v.id]; }
  const Domain& operator[](Variable v) const { return domains[v.id]; }
  iterator begin() { return domains.begin(); }
  iterator end() { return domains.end(); }
  const_iterator begin() const { return domains.begin(); }
  const_iterator end() const { return domains.end(); }
  std::size_t size() const { return domains.size(); }
  void push_back(const Domain& d) { domains.push_back(d); }
  template <typename... Args>
  void emplace_back(Args&&... args) {
    domains.emplace_back(std::forward<Args>(args)...);
  }
  std::vector<Domain> domains;
};

/// A value for each variable of a Model, or none.
class Solution {
 public:
  Solution() = default;
  Solution(std::vector<DataType> values) : values_(std::move(values)) {}  // NOLINT: as in the SDK
  DataType& operator[](Variable v) { return values_[v.id]; }
  DataType operator[](Variable v) const { return values_[v.id]; }
  bool validSolution() const { return !values_.empty(); }
  ConstraintEvaluationSummary constraintsEvaluated() const { return evaluated_; }

 private:
  friend class Model;
  std::vector<DataType> values_;
  ConstraintEvaluationSummary evaluated_;
};

class Constraint;

class Model {
 public:
  Model();
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// A variable of 0 to 2^64 - 2, or of min to max.
  Variable addVariable(const std::string& debugName = "");
  Variable addVariable(DataType min, DataType max, const std::string& debugName = "");
  Variable addVariable(DataType::UnderlyingType min, DataType::UnderlyingType max,
                       const std::string& debugName = "");
  Variable addConstant(DataType value, const std::string& debugName = "");
  Variable addConstant(DataType::UnderlyingType value, const std::string& debugName = "");
  Variable zero() { return addConstant(DataType{0}); }
  Variable one() { return addConstant(DataType{1}); }
  const std::string& getDebugName(Variable v) const { return names_[v.id]; }

  /// New variables that are functions of others. What exceeds 2^64 - 1, is negative, or is divided
  /// by zero is no solution.
  Variable product(const std::vector<Variable>& vars, const std::string& debugName = "");
  Variable sum(std::vector<Variable> vars, const std::string& debugName = "");
  Variable max(std::vector<Variable> vars, const std::string& debugName = "");
  Variable min(std::vector<Variable> vars, const std::string& debugName = "");
  Variable floordiv(Variable left, Variable right, const std::string& debugName = "");
  Variable ceildiv(Variable left, Variable right, const std::string& debugName = "");
  /// The same, with the least divisor that gives this result.
  Variable ceildivConstrainDivisor(Variable dividend, Variable divisor,
                                   const std::string& debugName = "");
  Variable mod(Variable left, Variable right, const std::string& debugName = "");
  Variable sub(Variable left, Variable right, const std::string& debugName = "");

  void less(Variable left, Variable right);
  void less(Variable left, DataType right) { less(left, addConstant(right)); }
  void less(DataType left, Variable right) { less(addConstant(left), right); }
  void lessOrEqual(Variable left, Variable right);
  void lessOrEqual(Variable left, DataType right) { lessOrEqual(left, addConstant(right)); }
  void lessOrEqual(DataType left, Variable right) { lessOrEqual(addConstant(left), right); }
  void equal(Variable left, Variable right);
  void equal(Variable left, DataType right) { equal(left, addConstant(right)); }
  void equal(DataType left, Variable right) { equal(addConstant(left), right); }
  /// `right` divides `left`.
  void factorOf(Variable left, Variable right);
  void factorOf(DataType left, Variable right) { factorOf(addConstant(left), right); }

  /// 1 where it holds, else 0. Variables count as true where they are not 0.
  Variable reifiedLess(Variable left, Variable right);
  Variable reifiedLessOrEqual(Variable left, Variable right);
  Variable reifiedEqual(Variable left, Variable right);
  Variable booleanOr(Variable left, Variable right);
  Variable booleanAnd(Variable left, Variable right);
  Variable booleanNot(Variable v);

  /// f(values of `vars`), once these are known; they are at most what T holds, DataType or an
  /// unsigned integer. `f` takes a std::vector<T> and gives a number or an optional one: none is no
  /// solution.
  template <typename T = unsigned, typename F>
  Variable call(std::vector<Variable> vars, F f, const std::string& debugName = "");

  /// The search decides variables of a group before those of groups that it is prioritised over;
  /// within a group, ranges of few values first.
  PriorityGroupID getDefaultPriorityGroup() const { return PriorityGroupID(0); }
  PriorityGroupID addPriorityGroup();
  void setPriorityGroup(Variable v, PriorityGroupID group);
  void prioritiseOver(PriorityGroupID a, PriorityGroupID b);

  /// The solution with the lexicographically least values of the variables given.
  Solution minimize(const std::vector<Variable>& objectives);
  Solution minimize(Variable objective) { return minimize(std::vector<Variable>{objective}); }

 private:
  using Values = std::vector<DataType>;
  Variable addCall(std::vector<Variable> vars, DataType most,
                   std::function<std::optional<DataType>(const Values&)> f,
                   const std::string& debugName);
  Variable addDerived(DataType most, const std::string& debugName);
  template <typename R>
  static std::optional<DataType> resultOf(const R& result);

  Domains domains_;
  std::vector<std::string> names_;
  std::vector<bool> is_called_;                   ///< a call's result: decided last
  std::vector<unsigned> groups_;                  ///< each variable's priority group
  std::vector<std::vector<unsigned>> dominated_;  ///< each group's: those it is prioritised over
  std::vector<std::unique_ptr<Constraint>> constraints_;
};

template <typename R>
std::optional<DataType> Model::resultOf(const R& result) {
  if constexpr (std::is_convertible_v<R, DataType>) {
    return DataType(result);
  } else {
    return result ? std::optional<DataType>(*result) : std::nullopt;
  }
}

template <typename T, typename F>
Variable Model::call(std::vector<Variable> vars, F f, const std::string& debugName) {
  if constexpr (std::is_same_v<T, DataType>) {
    return addCall(
        std::move(vars), DataType::max(), [f](const Values& values) { return resultOf(f(values)); },
        debugName);
  } else {
    static_assert(std::is_unsigned_v<T>, "call needs DataType or an unsigned integer");
    const auto narrowed = [f](const Values& values) {
      std::vector<T> operands;
      for (const DataType x : values) operands.push_back(x.getAs<T>());
      return resultOf(f(operands));
    };
    return addCall(std::move(vars), std::numeric_limits<T>::max(), narrowed, debugName);
  }
}

}  // namespace popsolver
