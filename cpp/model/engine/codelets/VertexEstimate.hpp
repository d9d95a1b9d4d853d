#pragma once
#include <cstdint>
#include <optional>

#include "engine/codelets/VertexStore.hpp"

namespace ipujax::engine {

/// The result of a codelet's getCycleEstimate() for a vertex, if it has one: it sees sizes and
/// values of fields, and no data. Throws poplar_error if it throws.
std::optional<std::uint64_t> ownEstimate(const VertexRecord& vertex, const IpujaxCodelet& codelet);

/// The bits of a field's value.
std::int64_t bitsOf(double value, ElementType type);

}  // namespace ipujax::engine
