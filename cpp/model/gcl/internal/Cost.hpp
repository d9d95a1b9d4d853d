#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/Cost.hpp"
#include "gcl/internal/Options.hpp"
#include "poplar/Target.hpp"
#include "poplar/Type.hpp"

namespace gcl {

enum class CollectiveKind : std::uint8_t { kAllReduce, kReduceScatter, kAllGather, kAllToAll };

/// One collective of every group of replicas at once; a replica is `target`'s IPUs.
struct CollectiveWork {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  poplar::Type type;
  /// Of one replica: the whole array, i.e. what a reduce-scatter takes and an all-gather makes.
  std::uint64_t elements = 0;
  const std::vector<std::vector<unsigned>>& groups;
  unsigned num_replicas = 1;
};

/// What the collective costs by one method. kAuto: by the cheapest of those that the group's size
/// and the options allow. `chosen`, where not null, is told which it is. Throws
/// poplar::invalid_option where the group cannot use the method that was asked for.
ipujax::engine::Cost costOf(const poplar::Target& target, const CollectiveWork& work,
                            const Options& options, Method* chosen = nullptr);

/// What it costs to send `elements` along each (source, target) pair of replicas at once.
ipujax::engine::Cost sendCost(const poplar::Target& target, poplar::Type type,
                              std::uint64_t elements,
                              const std::vector<std::pair<unsigned, unsigned>>& pairs,
                              unsigned num_replicas);

}  // namespace gcl
