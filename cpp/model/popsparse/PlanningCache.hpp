#pragma once
#include "poplin/MatMul.hpp"

namespace popsparse {
namespace dynamic {

/// A cache of plans. The model plans its products with poplin, so this keeps nothing of its own.
class PlanningCache {
 public:
  PlanningCache() = default;
  explicit PlanningCache(poplin::PlanningCache*) {}
};

}  // namespace dynamic

namespace static_ {

class PlanningCache {};

}  // namespace static_
}  // namespace popsparse
