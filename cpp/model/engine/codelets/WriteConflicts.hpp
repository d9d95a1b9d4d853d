#pragma once
#include "engine/graph/ProgramNode.hpp"

namespace ipujax::engine {

class GraphImpl;

/// Vertices that run at one time must not write one element. Throws graph_program_compilation_error
/// that names two that do, and graph_connection_error where a compute set is of another graph.
void checkWrites(const GraphImpl& graph, const ProgramNode& execute);

}  // namespace ipujax::engine
