#include "popsolver/internal/Constraint.hpp"

#include <algorithm>
#include <limits>

namespace popsolver {
namespace {

using Wide = Bounds::Wide;
constexpr Wide kMost = std::numeric_limits<std::uint64_t>::max();

Wide divideUp(Wide a, Wide b) { return (a + b - 1) / b; }

std::vector<Variable> together(Variable result, const std::vector<Variable>& operands) {
  std::vector<Variable> all{result};
  all.insert(all.end(), operands.begin(), operands.end());
  return all;
}

/// A constraint between a result and its operands.
class OfResult : public Constraint {
 public:
  OfResult(Variable result, const std::vector<Variable>& operands)
      : Constraint(together(result, operands)), result(result), operands(operands) {}

 protected:
  Variable result;
  std::vector<Variable> operands;
};

class Sum : public OfResult {
 public:
  using OfResult::OfResult;
  bool propagate(Bounds& b) const override {
    Wide least = 0;
    Wide most = 0;
    for (const Variable v : operands) {
      least += b.min(v);
      most += b.max(v);
    }
    if (!b.atLeast(result, least) || !b.atMost(result, std::min(most, kMost))) return false;
    for (const Variable v : operands) {
      const Wide other_least = least - b.min(v);
      const Wide other_most = most - b.max(v);
      if (b.max(result) < other_least) return false;
      const Wide v_most = b.max(result) - other_least;
      const Wide v_least = b.min(result) > other_most ? b.min(result) - other_most : 0;
      least -= b.min(v);
      most -= b.max(v);
      if (!b.atMost(v, v_most) || !b.atLeast(v, v_least)) return false;
      least += b.min(v);
      most += b.max(v);
    }
    return true;
  }
  std::uint64_t& countIn(ConstraintEvaluationSummary& s) const override { return s.sum; }
};

class Product : public OfResult {
 public:
  using OfResult::OfResult;
  bool propagate(Bounds& b) const override {
    const Variable x = operands[0];
    const Variable y = operands[1];
    return b.atLeast(result, b.min(x) * b.min(y)) &&
           b.atMost(result, std::min(b.max(x) * b.max(y), kMost)) && narrow(b, x, y) &&
           narrow(b, y, x);
  }
  std::uint64_t& countIn(ConstraintEvaluationSummary& s) const override { return s.product; }

 private:
  bool narrow(Bounds& b, Variable v, Variable other) const {
    if (b.min(other) > 0 && !b.atMost(v, b.max(result) / b.min(other))) return false;
    if (b.min(result) == 0) return true;
    return b.max(other) > 0 && b.atLeast(v, divideUp(b.min(result), b.max(other)));
  }
};

class Extreme : public OfResult {
 public:
  Extreme(Variable result, const std::vector<Variable>& operands, bool is_max)
      : OfResult(result, operands), is_max_(is_max) {}
  bool propagate(Bounds& b) const override {
    Wide least = b.min(operands[0]);
    Wide most = b.max(operands[0]);
    for (const Variable v : operands) {
      least = is_max_ ? std::max(least, b.min(v)) : std::min(least, b.min(v));
      most = is_max_ ? std::max(most, b.max(v)) : std::min(most, b.max(v));
    }
    if (!b.atLeast(result, least) || !b.atMost(result, most)) return false;
    for (const Variable v : operands)
      if (!(is_max_ ? b.atMost(v, b.max(result)) : b.atLeast(v, b.min(result)))) return false;
    return onlyOne(b);
  }
  std::uint64_t& countIn(ConstraintEvaluationSummary& s) const override {
    return is_max_ ? s.max : s.min;
  }

 private:
  /// An operand that alone can be the result is.
  bool onlyOne(Bounds& b) const {
    std::vector<Variable> able;
    for (const Variable v : operands)
      if (is_max_ ? b.max(v) >= b.min(result) : b.min(v) <= b.max(result)) able.push_back(v);
    if (able.empty()) return false;
    if (able.size() > 1) return true;
    return is_max_ ? b.atLeast(able[0], b.min(result)) : b.atMost(able[0], b.max(result));
  }
  bool is_max_;
};

class Quotient : public OfResult {
 public:
  Quotient(Variable result, Variable a, Variable b, bool up) : OfResult(result, {a, b}), up_(up) {}
  bool propagate(Bounds& b) const override {
    const Variable x = operands[0];
    const Variable y = operands[1];
    if (!b.atLeast(y, 1)) return false;
    if (up_)
      return b.atLeast(result, divideUp(b.min(x), b.max(y))) &&
             b.atMost(result, divideUp(b.max(x), b.min(y))) &&
             b.atMost(x, std::min(b.max(result) * b.max(y), kMost)) && upDivisor(b, x, y);
    return b.atLeast(result, b.min(x) / b.max(y)) && b.atMost(result, b.max(x) / b.min(y)) &&
           b.atLeast(x, b.min(result) * b.min(y)) &&
           b.atMost(x, std::min(b.max(result) * b.max(y) + b.max(y) - 1, kMost)) &&
           b.atLeast(y, b.min(x) / (b.max(result) + 1) + 1) &&
           (b.min(result) == 0 || b.atMost(y, b.max(x) / b.min(result)));
  }

 private:
  /// (result - 1) y < x <= result y.
  bool upDivisor(Bounds& b, Variable x, Variable y) const {
    if (b.max(result) > 0 && !b.atLeast(y, divideUp(b.min(x), b.max(result)))) return false;
    if (b.min(result) == 0) return true;
    if (!b.atLeast(x, (b.min(result) - 1) * b.min(y) + 1)) return false;
    return b.min(result) == 1 || b.atMost(y, (b.max(x) - 1) / (b.min(result) - 1));
  }
  bool up_;
};

class Order : public Constraint {
 public:
  Order(Variable a, Variable b, unsigned gap) : Constraint({a, b}), gap_(gap) {}
  bool propagate(Bounds& b) const override {
    return holds(b, variables()[0], variables()[1], gap_);
  }
  std::uint64_t& countIn(ConstraintEvaluationSummary& s) const override {
    return gap_ == 1 ? s.less : s.lessOrEqual;
  }
  static bool holds(Bounds& b, Variable x, Variable y, unsigned gap) {
    return b.max(y) >= gap && b.atMost(x, b.max(y) - gap) && b.atLeast(y, b.min(x) + gap);
  }

 private:
  unsigned gap_;
};

class ReifiedOrder : public OfResult {
 public:
  ReifiedOrder(Variable result, Variable a, Variable b, unsigned gap)
      : OfResult(result, {a, b}), gap_(gap) {}
  bool propagate(Bounds& b) const override {
    const Variable x = operands[0];
    const Variable y = operands[1];
    if (b.max(x) + gap_ <= b.min(y)) return b.set(result, 1);
    if (b.min(x) + gap_ > b.max(y)) return b.set(result, 0);
    if (!b.isFixed(result)) return true;
    return b.min(result) == 1 ? Order::holds(b, x, y, gap_) : Order::holds(b, y, x, 1 - gap_);
  }

 private:
  unsigned gap_;
};

class ReifiedEqual : public OfResult {
 public:
  using OfResult::OfResult;
  bool propagate(Bounds& b) const override {
    const Variable x = operands[0];
    const Variable y = operands[1];
    if (b.max(x) < b.min(y) || b.max(y) < b.min(x)) return b.set(result, 0);
    if (b.isFixed(x) && b.isFixed(y)) return b.set(result, 1);
    if (b.min(result) == 0) return true;
    return Order::holds(b, x, y, 0) && Order::holds(b, y, x, 0);
  }
};

class Call : public OfResult {
 public:
  using Function = std::function<std::optional<DataType>(const std::vector<DataType>&)>;
  Call(Variable result, const std::vector<Variable>& operands, Function f)
      : OfResult(result, operands), f_(std::move(f)) {}
  bool propagate(Bounds& b) const override {
    std::vector<DataType> values;
    for (const Variable v : operands) {
      if (!b.isFixed(v)) return true;
      values.push_back(static_cast<std::uint64_t>(b.min(v)));
    }
    const auto value = f_(values);
    return value && b.set(result, **value);
  }
  std::uint64_t& countIn(ConstraintEvaluationSummary& s) const override { return s.call; }

 private:
  Function f_;
};

}  // namespace

bool Bounds::atLeast(Variable v, Wide x) {
  Domain& domain = domains_[v];
  if (x > *domain.max_) return false;
  if (x > *domain.min_) {
    domain.min_ = static_cast<std::uint64_t>(x);
    changed_.push_back(v);
  }
  return true;
}

bool Bounds::atMost(Variable v, Wide x) {
  Domain& domain = domains_[v];
  if (x < *domain.min_) return false;
  if (x < *domain.max_) {
    domain.max_ = static_cast<std::uint64_t>(x);
    changed_.push_back(v);
  }
  return true;
}

std::unique_ptr<Constraint> makeSum(Variable result, const std::vector<Variable>& operands) {
  return std::make_unique<Sum>(result, operands);
}
std::unique_ptr<Constraint> makeProduct(Variable result, Variable a, Variable b) {
  return std::make_unique<Product>(result, std::vector<Variable>{a, b});
}
std::unique_ptr<Constraint> makeExtreme(Variable result, const std::vector<Variable>& operands,
                                        bool is_max) {
  return std::make_unique<Extreme>(result, operands, is_max);
}
std::unique_ptr<Constraint> makeQuotient(Variable result, Variable a, Variable b, bool up) {
  return std::make_unique<Quotient>(result, a, b, up);
}
std::unique_ptr<Constraint> makeOrder(Variable a, Variable b, unsigned gap) {
  return std::make_unique<Order>(a, b, gap);
}
std::unique_ptr<Constraint> makeReifiedOrder(Variable result, Variable a, Variable b,
                                             unsigned gap) {
  return std::make_unique<ReifiedOrder>(result, a, b, gap);
}
std::unique_ptr<Constraint> makeReifiedEqual(Variable result, Variable a, Variable b) {
  return std::make_unique<ReifiedEqual>(result, std::vector<Variable>{a, b});
}
std::unique_ptr<Constraint> makeCall(
    Variable result, const std::vector<Variable>& operands,
    std::function<std::optional<DataType>(const std::vector<DataType>&)> f) {
  return std::make_unique<Call>(result, operands, std::move(f));
}

}  // namespace popsolver
