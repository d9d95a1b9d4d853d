#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "engine/TripCounts.hpp"

/// Streams that the library adds for itself, and how an engine finds them again in an executable:
/// by their handles, which begin with a character that no user's handle needs.
namespace poplar::internal {

/// The stream of one argument or result; without an index, how all of their handles begin.
std::string hostFunctionStream(const std::string& handle, bool is_input,
                               std::optional<std::size_t> index);

/// The pair of streams around what a cycle counter measures.
std::string cycleCounterStream(std::size_t number, bool is_end);
bool isCycleCounterEnd(const std::string& handle);
std::string cycleCounterBegin(const std::string& end_handle);

/// The cycles of what runs between the copies from two streams that stand in one sequence.
std::uint64_t cyclesBetween(const ipujax::engine::Image& image, std::uint32_t begin_stream,
                            std::uint32_t end_stream, const ipujax::engine::TripMeans& trips);

}  // namespace poplar::internal
