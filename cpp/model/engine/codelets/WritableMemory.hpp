#pragma once
#include <cstddef>
#include <vector>

#include "engine/VertexAbi.hpp"

namespace ipujax::engine {

/// What the workers of a vertex may write: its object of so many bytes, its lists and vectors of
/// state behind it, and the elements of its outputs.
std::vector<IpujaxRange> writableMemory(const IpujaxCodelet& codelet, const std::byte* object,
                                        std::size_t bytes);

}  // namespace ipujax::engine
