#pragma once
#include <memory>

namespace poplin {

class PlanningCacheImpl;

/// Plans already made, by everything they depend on. Give one to all calls that build one graph:
/// equal layers are then planned once. Not thread-safe.
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
