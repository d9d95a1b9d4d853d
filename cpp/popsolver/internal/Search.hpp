#pragma once
#include <memory>
#include <vector>

#include "popsolver/internal/Constraint.hpp"

namespace popsolver {

/// For each variable the rank at which a search decides it: variables of equal rank by range.
/// Throws poplibs_error where groups are prioritised over each other.
std::vector<unsigned> searchOrder(const std::vector<bool>& is_called,
                                  const std::vector<unsigned>& groups,
                                  const std::vector<std::vector<unsigned>>& dominated);

/// Branch and bound: ranges are halved, lower halves first, and narrowed by all constraints. A
/// solution bounds the objectives of what is searched after it.
class Search {
 public:
  Search(const std::vector<std::unique_ptr<Constraint>>& constraints,
         std::vector<Variable> objectives, std::vector<unsigned> order);
  /// The best solution's values; none where there is none.
  std::vector<DataType> run(const Domains& domains);
  const ConstraintEvaluationSummary& evaluated() const { return evaluated_; }

 private:
  /// Narrows `domains` by the constraints on `changed`, or by all; false where nothing remains.
  bool narrow(Domains& domains, const std::vector<Variable>* changed);
  bool boundObjectives(Bounds& bounds) const;
  /// The variable to decide next, or none.
  const Variable* next(const Domains& domains, Variable& v) const;
  void branch(Domains domains);

  const std::vector<std::unique_ptr<Constraint>>& constraints_;
  std::vector<Variable> objectives_;
  std::vector<unsigned> order_;
  std::vector<std::vector<unsigned>> constraints_of_;  ///< by variable
  std::vector<DataType> best_;
  ConstraintEvaluationSummary evaluated_;
};

}  // namespace popsolver
