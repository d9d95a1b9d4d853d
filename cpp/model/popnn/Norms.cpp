#include "popnn/Norms.hpp"

#include "poplin/Norms.hpp"

namespace popnn {

using poplar::Tensor;

std::uint64_t getNormFwdFlops(std::size_t statisticsSize, std::size_t numActsElements,
                              bool computeStats) {
  return computeStats ? 5 * numActsElements + 6 * statisticsSize : 2 * numActsElements;
}
std::uint64_t getNormBwdFlops(std::size_t statisticsSize, std::size_t numActsElements) {
  return 8 * numActsElements + 2 * statisticsSize;
}
std::uint64_t getNormWuFlops(std::size_t paramsSize, std::size_t numActsElements) {
  return 2 * numActsElements + 4 * paramsSize;
}

Tensor createNormGamma(poplar::Graph& graph, const Tensor& acts,
                       const poplar::DebugContext& debugContext) {
  return poplin::createNormGamma(graph, acts, debugContext);
}
Tensor createNormBeta(poplar::Graph& graph, const Tensor& acts,
                      const poplar::DebugContext& debugContext) {
  return poplin::createNormBeta(graph, acts, debugContext);
}
std::pair<Tensor, Tensor> createNormParams(poplar::Graph& graph, const Tensor acts,
                                           const poplar::DebugContext& debugContext) {
  return poplin::createNormParams(graph, acts, debugContext);
}

}  // namespace popnn
