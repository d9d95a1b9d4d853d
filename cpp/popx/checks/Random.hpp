#pragma once
#include <cstdint>
#include <string>

#include "popx/Random.hpp"

/// For the library: the checks of popx::rngBitGenerator.
namespace popx::random {

struct Generator {
  bool threefry;
  std::uint64_t state_bytes;
};

/// Throws if there is no such generator.
Generator check(const poplar::Graph& graph, const poplar::Tensor& state,
                const std::string& algorithm, const poplar::Type& type);

}  // namespace popx::random
