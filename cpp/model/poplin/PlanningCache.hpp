#pragma once
#include <memory>

namespace poplin {

class PlanningCacheImpl;

/// Caches plans by everything they depend on. Pass one cache to all calls that build a graph, so
/// that equal layers are planned once. Not thread-safe.
class PlanningCache {
 public:
  PlanningCache();
  ~PlanningCache();
  std::size_t size() const;
  /// For the library.
  PlanningCacheImpl& impl() { return *impl_; }

 private:
  std::unique_ptr<PlanningCacheImpl> impl_;
};

namespace matmul {
using PlanningCache = poplin::PlanningCache;
}

}  // namespace poplin
