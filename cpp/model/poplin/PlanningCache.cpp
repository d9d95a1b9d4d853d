#include "poplin/PlanningCache.hpp"

#include "poplin/internal/PlanningCacheImpl.hpp"

namespace poplin {

PlanningCache::PlanningCache() : impl_(std::make_unique<PlanningCacheImpl>()) {}
PlanningCache::~PlanningCache() = default;
std::size_t PlanningCache::size() const { return impl_->size(); }

const plan::Plan& PlanningCacheImpl::plan(const plan::Problem& problem,
                                          const poplar::Target& target) {
  auto key = std::make_pair(
      TargetKey(std::string(target.getTargetArchString()), target.getNumTiles()), problem);
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  return plans_.emplace(std::move(key), plan::makePlan(problem, target)).first->second;
}

plan::Plan planFor(const plan::Problem& problem, const poplar::Target& target,
                   PlanningCache* cache) {
  return cache ? cache->impl().plan(problem, target) : plan::makePlan(problem, target);
}

}  // namespace poplin
