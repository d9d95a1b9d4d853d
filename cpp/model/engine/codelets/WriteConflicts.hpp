#pragma once
#include "engine/graph/ProgramNode.hpp"

namespace ipujax::engine {

class GraphImpl;

/// Checks that vertices that run at the same time do not write the same element. Throws
/// graph_program_compilation_error that names two that do, and graph_connection_error if a compute
/// set is of another graph.
void checkWrites(const GraphImpl& graph, const ProgramNode& execute);

}  // namespace ipujax::engine
