#pragma once
#include <optional>
#include <string>

#include "engine/VertexAbi.hpp"
#include "engine/codelets/VertexStore.hpp"

namespace ipujax::engine {

/// A tensor whose rank does not fit its field: "a tensor of one dimension", "{2,3}".
struct RankMisfit {
  std::string needs, got;
};

/// Compares ranks with those that connect() is documented to take: 1 for a vector; 2 for a list of
/// vectors, or a list of tensors of rank 1. Scalars are checked by their number of elements.
std::optional<RankMisfit> findRankMisfit(const IpujaxField& field, const Connection& connection);

}  // namespace ipujax::engine
