#pragma once
#include <map>
#include <string>
#include <utility>

#include "poplin/PlanningCache.hpp"
#include "poplin/internal/Plan.hpp"

namespace poplin {

class PlanningCacheImpl {
 public:
  /// The plan of `problem`, made at its first use.
  const plan::Plan& plan(const plan::Problem& problem, const poplar::Target& target);
  std::size_t size() const { return plans_.size(); }

 private:
  using TargetKey = std::pair<std::string, unsigned>;
  std::map<std::pair<TargetKey, plan::Problem>, plan::Plan> plans_;
};

/// The plan of `problem`, from the cache if there is one.
plan::Plan planFor(const plan::Problem& problem, const poplar::Target& target,
                   PlanningCache* cache);

}  // namespace poplin
