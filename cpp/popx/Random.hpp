#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popx {

/// stablehlo.rng_bit_generator, bit for bit as XLA's CPU backend: (new state, bits). `algorithm` is
/// "threefry", "philox" or "default" (philox). `state` has 16 bytes (or 24 for philox):
/// UNSIGNED_INT [4] or UNSIGNED_LONGLONG [2]. `type` is an integer type, or FLOAT or HALF for their
/// raw bits. On tiles: an integer codelet, one counter per two (threefry) or four (philox) 32-bit
/// words.
std::pair<poplar::Tensor, poplar::Tensor> rngBitGenerator(
    poplar::Graph& graph, const poplar::Tensor& state, const std::string& algorithm,
    const std::vector<std::size_t>& shape, const poplar::Type& type,
    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

}  // namespace popx
