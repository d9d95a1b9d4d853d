#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/image/Step.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/collectives/CollectiveCombine.hpp"
#include "engine/kernels/collectives/CollectiveGroups.hpp"
#include "engine/kernels/collectives/CollectiveOperator.hpp"

namespace ipujax::engine::collective {

/// One array of a step "gcl.reduce".
struct ReducePart {
  std::size_t input = 0;   ///< operand
  std::size_t output = 0;  ///< operand
  ElementType type = ElementType::kFloat;
  const CombineLoops* loops = nullptr;
  std::int64_t n = 0;  ///< elements of a replica's input
};

/// What a step "gcl.reduce" combines; see ReduceKernel.
struct ReduceStep {
  explicit ReduceStep(const StepDesc& step);

  Groups groups;
  bool scatters;
  bool is_mean;
  bool is_local;  ///< nothing is combined
  bool squares;   ///< elements are squared first
  std::vector<ReducePart> parts;

  /// How many elements each member of a group receives.
  std::int64_t share(const ReducePart& part, std::size_t members) const;
  /// 0 where the result is no mean.
  std::size_t meanOf(const std::vector<unsigned>& group) const {
    return is_mean ? group.size() : 0;
  }
};

reduction::Reducer reducerOf(CollectiveOperator op);
/// Number of elements, out of n, that each member of a group receives.
std::int64_t shareOf(std::int64_t n, std::size_t members, bool scatters);

/// The step where not all replicas run in this process.
std::unique_ptr<PeerStep> reduceAmongProcesses(const ReduceStep& step, const runtime::Peers& peers);

}  // namespace ipujax::engine::collective
