#include "popsolver/internal/Search.hpp"

#include <algorithm>
#include <deque>

namespace popsolver {

std::vector<unsigned> searchOrder(const std::vector<bool>& is_called,
                                  const std::vector<unsigned>& groups,
                                  const std::vector<std::vector<unsigned>>& dominated) {
  std::vector<unsigned> depth(dominated.size(), 0);
  bool is_settled = false;
  for (std::size_t round = 0; round <= dominated.size() && !is_settled; ++round) {
    is_settled = true;
    for (std::size_t a = 0; a < dominated.size(); ++a)
      for (const unsigned b : dominated[a])
        if (depth[b] <= depth[a]) {
          depth[b] = depth[a] + 1;
          is_settled = false;
        }
  }
  if (!is_settled)
    throw poputil::poplibs_error(
        "[popsolver::Model::prioritiseOver] needs an order of the groups; got a cycle. Prioritise "
        "in one direction.");
  std::vector<unsigned> order(groups.size());
  const auto groups_count = static_cast<unsigned>(dominated.size());
  for (std::size_t v = 0; v < groups.size(); ++v)
    order[v] = depth[groups[v]] + (is_called[v] ? groups_count : 0);
  return order;
}

Search::Search(const std::vector<std::unique_ptr<Constraint>>& constraints,
               std::vector<Variable> objectives, std::vector<unsigned> order)
    : constraints_(constraints),
      objectives_(std::move(objectives)),
      order_(std::move(order)),
      constraints_of_(order_.size()) {
  for (unsigned c = 0; c < constraints_.size(); ++c)
    for (const Variable v : constraints_[c]->variables()) constraints_of_[v.id].push_back(c);
}

std::vector<DataType> Search::run(const Domains& domains) {
  Domains narrowed = domains;
  for (const Domain& domain : domains)
    if (domain.max() < domain.min()) return {};
  if (narrow(narrowed, nullptr)) branch(std::move(narrowed));
  return best_;
}

bool Search::boundObjectives(Bounds& bounds) const {
  if (best_.empty()) return true;
  for (std::size_t i = 0; i < objectives_.size(); ++i) {
    const Variable v = objectives_[i];
    const Bounds::Wide best = *best_[v.id];
    if (i + 1 == objectives_.size()) return best > 0 && bounds.atMost(v, best - 1);
    if (!bounds.atMost(v, best)) return false;
    if (bounds.min(v) < best) return true;
  }
  return false;  // nothing to minimise: any solution is the best
}

bool Search::narrow(Domains& domains, const std::vector<Variable>* changed) {
  Bounds bounds(domains);
  std::vector<bool> is_waiting(constraints_.size(), changed == nullptr);
  std::deque<unsigned> queue;
  const auto wake = [&](Variable v) {
    for (const unsigned c : constraints_of_[v.id])
      if (!is_waiting[c]) {
        is_waiting[c] = true;
        queue.push_back(c);
      }
  };
  if (changed == nullptr)
    for (unsigned c = 0; c < constraints_.size(); ++c) queue.push_back(c);
  else
    for (const Variable v : *changed) wake(v);
  while (true) {
    if (!boundObjectives(bounds)) return false;
    for (const Variable v : bounds.takeChanged()) wake(v);
    if (queue.empty()) return true;
    const unsigned c = queue.front();
    queue.pop_front();
    is_waiting[c] = false;
    ++constraints_[c]->countIn(evaluated_);
    if (!constraints_[c]->propagate(bounds)) return false;
  }
}

const Variable* Search::next(const Domains& domains, Variable& v) const {
  const Variable* found = nullptr;
  for (unsigned i = 0; i < order_.size(); ++i) {
    const Domain& domain = domains.domains[i];
    if (domain.size() == 0) continue;
    const bool is_earlier = found == nullptr || order_[i] < order_[v.id] ||
                            (order_[i] == order_[v.id] && domain.size() < domains[v].size());
    if (!is_earlier) continue;
    v = Variable(i);
    found = &v;
  }
  return found;
}

void Search::branch(Domains domains) {
  while (true) {
    Variable v;
    if (next(domains, v) == nullptr) {
      best_.clear();
      for (const Domain& domain : domains) best_.push_back(domain.val());
      return;
    }
    const DataType middle = domains[v].min() + domains[v].size() / 2;
    Domains lower = domains;
    lower[v].max_ = middle;
    const std::vector<Variable> changed{v};
    if (narrow(lower, &changed)) branch(std::move(lower));
    domains[v].min_ = middle + 1;
    if (!narrow(domains, &changed)) return;
  }
}

}  // namespace popsolver
