#pragma once
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "popsolver/Model.hpp"

/// For the library: the constraints of a Model, by bounds consistency.
namespace popsolver {

/// The ranges of a search, narrowed by constraints. Each method is false where nothing remains.
class Bounds {
 public:
  __extension__ using Wide = unsigned __int128;  ///< holds sums and products of values
  explicit Bounds(Domains& domains) : domains_(domains) {}
  Wide min(Variable v) const { return *domains_[v].min(); }
  Wide max(Variable v) const { return *domains_[v].max(); }
  bool isFixed(Variable v) const { return domains_[v].min() == domains_[v].max(); }
  bool atLeast(Variable v, Wide x);
  bool atMost(Variable v, Wide x);
  bool set(Variable v, Wide x) { return atLeast(v, x) && atMost(v, x); }
  /// The variables whose range became smaller since the last call.
  std::vector<Variable> takeChanged() { return std::exchange(changed_, {}); }

 private:
  Domains& domains_;
  std::vector<Variable> changed_;
};

class Constraint {
 public:
  virtual ~Constraint() = default;
  explicit Constraint(std::vector<Variable> variables) : variables_(std::move(variables)) {}
  const std::vector<Variable>& variables() const { return variables_; }
  /// Narrows the ranges; false where there is no solution.
  virtual bool propagate(Bounds& bounds) const = 0;
  /// The count of evaluations of this kind.
  virtual std::uint64_t& countIn(ConstraintEvaluationSummary& s) const { return s.unknown; }

 private:
  std::vector<Variable> variables_;
};

/// variables: the result, then the operands.
std::unique_ptr<Constraint> makeSum(Variable result, const std::vector<Variable>& operands);
std::unique_ptr<Constraint> makeProduct(Variable result, Variable a, Variable b);
std::unique_ptr<Constraint> makeExtreme(Variable result, const std::vector<Variable>& operands,
                                        bool is_max);
/// result = a / b, rounded down or up.
std::unique_ptr<Constraint> makeQuotient(Variable result, Variable a, Variable b, bool up);
/// a + gap <= b; the gap is 0 or 1.
std::unique_ptr<Constraint> makeOrder(Variable a, Variable b, unsigned gap);
/// result = (a + gap <= b).
std::unique_ptr<Constraint> makeReifiedOrder(Variable result, Variable a, Variable b, unsigned gap);
std::unique_ptr<Constraint> makeReifiedEqual(Variable result, Variable a, Variable b);
std::unique_ptr<Constraint> makeCall(
    Variable result, const std::vector<Variable>& operands,
    std::function<std::optional<DataType>(const std::vector<DataType>&)> f);

}  // namespace popsolver
