#pragma once
#include <cstddef>
#include <vector>

#include "engine/VertexAbi.hpp"

namespace ipujax::engine {

/// The memory that the workers of a vertex may write: `bytes` of its object, with its lists and
/// vectors of state after it, and the elements of its outputs.
std::vector<IpujaxRange> writableMemory(const IpujaxCodelet& codelet, const std::byte* object,
                                        std::size_t bytes);

}  // namespace ipujax::engine
