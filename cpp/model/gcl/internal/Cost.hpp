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

/// A collective that all groups of replicas run at once; a replica is `target`'s IPUs.
struct CollectiveWork {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  poplar::Type type;
  /// Elements of one replica's whole array: a reduce-scatter's input, an all-gather's result.
  std::uint64_t elements = 0;
  const std::vector<std::vector<unsigned>>& groups;
  unsigned num_replicas = 1;
};

/// Cost of the collective by one method; with kAuto, by the cheapest that the group's size and the
/// options allow. Stores the method used in `chosen`, unless null. Throws poplar::invalid_option if
/// the group cannot use the requested method.
ipujax::engine::Cost costOf(const poplar::Target& target, const CollectiveWork& work,
                            const Options& options, Method* chosen = nullptr);

/// Cost of sending `elements` along each (source, target) pair of replicas at once.
ipujax::engine::Cost sendCost(const poplar::Target& target, poplar::Type type,
                              std::uint64_t elements,
                              const std::vector<std::pair<unsigned, unsigned>>& pairs,
                              unsigned num_replicas);

}  // namespace gcl
