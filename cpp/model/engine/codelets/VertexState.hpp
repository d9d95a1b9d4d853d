#pragma once
#include <cstdint>

#include "engine/VertexAbi.hpp"

namespace ipujax::engine {

class GraphImpl;
struct VertexRecord;

/// A vertex's fields lie in its tile's memory, so values that a codelet writes to them are still
/// there when it next runs, anywhere in the programs. Gives each compute set with such codelets a
/// variable for their fields: for each vertex a byte that tells whether it ran, then the values.
/// Only programs of an Engine keep variables from run to run; others set fields anew at each step.
void keepVertexStates(GraphImpl& graph);

/// Elements of a vector of state.
std::uint64_t stateElements(const VertexRecord& vertex, const IpujaxField& field);

}  // namespace ipujax::engine
