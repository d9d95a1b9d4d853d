#pragma once

namespace ipujax::engine {

/// Step "engine.edges": operand 0 holds the edges of vertices, each as one run; the others are the
/// variables that contain the edges' elements.
constexpr const char* kEdges = "engine.edges";
/// Each run is an operand, the run's start in that operand and in operand 0, and its length.
constexpr const char* kEdgeRuns = "runs";
constexpr const char* kScatters = "scatters";  ///< 1: from operand 0 to the others

}  // namespace ipujax::engine
