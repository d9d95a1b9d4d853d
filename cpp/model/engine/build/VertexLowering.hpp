#pragma once
#include <vector>

#include "engine/graph/ProgramNode.hpp"

namespace ipujax::engine {

class GraphImpl;

/// Turns program::Execute of these compute sets into steps that run their vertices.
std::vector<ProgramNodePtr> lowerComputeSets(GraphImpl& graph, const ProgramNode& execute);

}  // namespace ipujax::engine
