#pragma once
#include <cstdint>

#include "engine/VertexAbi.hpp"

namespace ipujax::engine {

class GraphImpl;
struct VertexRecord;

/// A vertex's fields lie in its tile's memory, so what a codelet writes to them is there when it
/// runs next, wherever in the programs that is. Gives each compute set whose codelets do so a
/// variable for their fields: for each vertex a byte that tells whether it ran, then the values.
/// Only programs of an Engine keep variables from run to run; others set fields anew at each step.
void keepVertexStates(GraphImpl& graph);

/// Elements of a vector of state.
std::uint64_t stateElements(const VertexRecord& vertex, const IpujaxField& field);

}  // namespace ipujax::engine
