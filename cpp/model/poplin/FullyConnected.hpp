#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "poplin/MatMul.hpp"

namespace poplin {
namespace fc {

/// A layer [G, batch, input] x [G, input, output] with independent groups.
struct FullyConnectedParams {
  std::size_t numGroups;
  std::size_t batchSize;
  std::size_t inputSize;
  std::size_t outputSize;
};

/// The products of a layer, for preplanMatMuls: the forward pass alone with `inferenceOnly`,
/// otherwise also the gradients of the input and of the weights. The options are `matmulOptions`
/// with the product's own fullyConnectedPass. Source: PopLibs include/poplin/FullyConnected.hpp.
std::vector<std::pair<MatMulParams, poplar::OptionFlags>> getMatMulPrePlanParameters(
    FullyConnectedParams parameters, poplar::OptionFlags matmulOptions, poplar::Type type,
    bool inferenceOnly);

}  // namespace fc
}  // namespace poplin
