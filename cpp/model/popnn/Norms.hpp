#pragma once
#include <cstdint>
#include <utility>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace popnn {

/// Operations of a normalisation layer, where an addition, multiplication or root counts as one: 5
/// for each element of the activations and 6 for each statistic (2 for each element if statistics
/// are not computed). Its gradient has 8 and 2, its parameters' update 2 and 4.
std::uint64_t getNormFwdFlops(std::size_t statisticsSize, std::size_t numActsElements,
                              bool computeStats = true);
std::uint64_t getNormBwdFlops(std::size_t statisticsSize, std::size_t numActsElements);
std::uint64_t getNormWuFlops(std::size_t paramsSize, std::size_t numActsElements);

/// gamma and beta for activations [B][C][field...]: vectors [C], not initialised.
poplar::Tensor createNormGamma(poplar::Graph& graph, const poplar::Tensor& acts,
                               const poplar::DebugContext& debugContext = {});
poplar::Tensor createNormBeta(poplar::Graph& graph, const poplar::Tensor& acts,
                              const poplar::DebugContext& debugContext = {});
std::pair<poplar::Tensor, poplar::Tensor> createNormParams(
    poplar::Graph& graph, const poplar::Tensor acts, const poplar::DebugContext& debugContext = {});

}  // namespace popnn
