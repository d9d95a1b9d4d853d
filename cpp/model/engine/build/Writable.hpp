#pragma once
#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine::build {

/// Throws graph_program_compilation_error if a step writes to a constant, or more than once to an
/// element, such as one repeated by broadcast().
void needWritable(const GraphImpl& graph, const ProgramNode& node);

}  // namespace ipujax::engine::build
