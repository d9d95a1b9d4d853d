#include "popsolver/Model.hpp"

#include <algorithm>
#include <ostream>

#include "popsolver/internal/Constraint.hpp"
#include "popsolver/internal/Search.hpp"

namespace popsolver {
namespace {

void requireOperands(const std::vector<Variable>& vars, const char* name) {
  if (vars.empty())
    throw poputil::poplibs_error(std::string("[popsolver::Model::") + name +
                                 "] needs one variable or more; got none. Pass some.");
}

}  // namespace

void ConstraintEvaluationSummary::operator+=(const ConstraintEvaluationSummary& other) {
  call += other.call;
  product += other.product;
  sum += other.sum;
  max += other.max;
  min += other.min;
  less += other.less;
  lessOrEqual += other.lessOrEqual;
  unknown += other.unknown;
}

std::ostream& operator<<(std::ostream& os, const ConstraintEvaluationSummary& s) {
  return os << "{call=" << s.call << ", product=" << s.product << ", sum=" << s.sum
            << ", max=" << s.max << ", min=" << s.min << ", less=" << s.less
            << ", lessOrEqual=" << s.lessOrEqual << ", unknown=" << s.unknown
            << ", total=" << s.total() << "}";
}

Model::Model() : dominated_(1) {}
Model::~Model() = default;

Variable Model::addVariable(DataType min, DataType max, const std::string& debugName) {
  const Variable v(static_cast<Variable::IndexType>(domains_.size()));
  domains_.emplace_back(min, max);
  names_.push_back(debugName);
  is_called_.push_back(false);
  groups_.push_back(getDefaultPriorityGroup());
  return v;
}
Variable Model::addVariable(const std::string& debugName) {
  return addVariable(DataType::min(), DataType::max() - 1, debugName);
}
Variable Model::addVariable(DataType::UnderlyingType min, DataType::UnderlyingType max,
                            const std::string& debugName) {
  return addVariable(DataType(min), DataType(max), debugName);
}
Variable Model::addConstant(DataType value, const std::string& debugName) {
  return addVariable(value, value, debugName);
}
Variable Model::addConstant(DataType::UnderlyingType value, const std::string& debugName) {
  return addConstant(DataType(value), debugName);
}
Variable Model::addDerived(DataType most, const std::string& debugName) {
  return addVariable(DataType::min(), most, debugName);
}

Variable Model::product(const std::vector<Variable>& vars, const std::string& debugName) {
  requireOperands(vars, "product");
  Variable result = vars[0];
  for (std::size_t i = 1; i < vars.size(); ++i) {
    const Variable next = addDerived(DataType::max(), debugName);
    constraints_.push_back(makeProduct(next, result, vars[i]));
    result = next;
  }
  return result;
}

Variable Model::sum(std::vector<Variable> vars, const std::string& debugName) {
  requireOperands(vars, "sum");
  const Variable result = addDerived(DataType::max(), debugName);
  constraints_.push_back(makeSum(result, vars));
  return result;
}

Variable Model::max(std::vector<Variable> vars, const std::string& debugName) {
  requireOperands(vars, "max");
  const Variable result = addDerived(DataType::max(), debugName);
  constraints_.push_back(makeExtreme(result, vars, true));
  return result;
}

Variable Model::min(std::vector<Variable> vars, const std::string& debugName) {
  requireOperands(vars, "min");
  const Variable result = addDerived(DataType::max(), debugName);
  constraints_.push_back(makeExtreme(result, vars, false));
  return result;
}

Variable Model::floordiv(Variable left, Variable right, const std::string& debugName) {
  const Variable result = addDerived(DataType::max(), debugName);
  constraints_.push_back(makeQuotient(result, left, right, false));
  return result;
}

Variable Model::ceildiv(Variable left, Variable right, const std::string& debugName) {
  const Variable result = addDerived(DataType::max(), debugName);
  constraints_.push_back(makeQuotient(result, left, right, true));
  return result;
}

Variable Model::ceildivConstrainDivisor(Variable dividend, Variable divisor,
                                        const std::string& debugName) {
  const Variable result = ceildiv(dividend, divisor, debugName);
  less(product({result, sub(divisor, one())}), dividend);
  return result;
}

Variable Model::mod(Variable left, Variable right, const std::string& debugName) {
  const Variable result = sub(left, product({floordiv(left, right), right}), debugName);
  less(result, right);
  return result;
}

Variable Model::sub(Variable left, Variable right, const std::string& debugName) {
  const Variable result = addDerived(DataType::max(), debugName);
  constraints_.push_back(makeSum(left, {result, right}));
  return result;
}

void Model::less(Variable left, Variable right) {
  constraints_.push_back(makeOrder(left, right, 1));
}
void Model::lessOrEqual(Variable left, Variable right) {
  constraints_.push_back(makeOrder(left, right, 0));
}
void Model::equal(Variable left, Variable right) {
  lessOrEqual(left, right);
  lessOrEqual(right, left);
}
void Model::factorOf(Variable left, Variable right) {
  constraints_.push_back(makeProduct(left, right, addDerived(DataType::max(), "")));
}

Variable Model::reifiedLess(Variable left, Variable right) {
  const Variable result = addDerived(1, "");
  constraints_.push_back(makeReifiedOrder(result, left, right, 1));
  return result;
}
Variable Model::reifiedLessOrEqual(Variable left, Variable right) {
  const Variable result = addDerived(1, "");
  constraints_.push_back(makeReifiedOrder(result, left, right, 0));
  return result;
}
Variable Model::reifiedEqual(Variable left, Variable right) {
  const Variable result = addDerived(1, "");
  constraints_.push_back(makeReifiedEqual(result, left, right));
  return result;
}
Variable Model::booleanNot(Variable v) { return reifiedEqual(v, zero()); }
Variable Model::booleanOr(Variable left, Variable right) {
  return reifiedLess(zero(), max({left, right}));
}
Variable Model::booleanAnd(Variable left, Variable right) {
  return reifiedLess(zero(), min({left, right}));
}

Variable Model::addCall(std::vector<Variable> vars, DataType most,
                        std::function<std::optional<DataType>(const Values&)> f,
                        const std::string& debugName) {
  for (const Variable v : vars)
    if (most < domains_[v].max()) lessOrEqual(v, most);
  const Variable result = addDerived(DataType::max(), debugName);
  is_called_[result.id] = true;
  constraints_.push_back(makeCall(result, vars, std::move(f)));
  return result;
}

PriorityGroupID Model::addPriorityGroup() {
  dominated_.emplace_back();
  return PriorityGroupID(static_cast<unsigned>(dominated_.size() - 1));
}
void Model::setPriorityGroup(Variable v, PriorityGroupID group) { groups_[v.id] = group; }
void Model::prioritiseOver(PriorityGroupID a, PriorityGroupID b) { dominated_[a].push_back(b); }

Solution Model::minimize(const std::vector<Variable>& objectives) {
  Search search(constraints_, objectives, searchOrder(is_called_, groups_, dominated_));
  Solution solution;
  solution.values_ = search.run(domains_);
  solution.evaluated_ = search.evaluated();
  return solution;
}

}  // namespace popsolver
