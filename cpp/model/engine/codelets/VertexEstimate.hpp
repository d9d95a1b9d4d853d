#pragma once
#include <cstdint>
#include <optional>

#include "engine/codelets/VertexStore.hpp"

namespace ipujax::engine {

/// What a codelet's getCycleEstimate() says of a vertex, if it has one: it sees sizes and values
/// of fields, and no data. Throws poplar_error where it throws.
std::optional<std::uint64_t> ownEstimate(const VertexRecord& vertex, const IpujaxCodelet& codelet);

/// The bits of a field's value.
std::int64_t bitsOf(double value, ElementType type);

}  // namespace ipujax::engine
