#pragma once
#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine::build {

/// Throws graph_program_compilation_error where a step writes to a constant, or to one element more
/// than once, as to what broadcast() repeats.
void needWritable(const GraphImpl& graph, const ProgramNode& node);

}  // namespace ipujax::engine::build
