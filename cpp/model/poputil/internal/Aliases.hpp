#pragma once
#include <utility>

#include "poplar/Graph.hpp"

namespace poputil::internal {

/// `from` and `to`, of one shape, as a program can copy them: if elements of `to` appear more than
/// once, both flat with each element of `to` once.
std::pair<poplar::Tensor, poplar::Tensor> withoutAliases(const poplar::Graph& graph,
                                                         const poplar::Tensor& from,
                                                         const poplar::Tensor& to);

}  // namespace poputil::internal
