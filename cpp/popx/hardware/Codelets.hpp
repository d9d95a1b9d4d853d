#pragma once
#include <string>

#include "poplar/Graph.hpp"

/// For the library: vertices of popx's own codelets.
namespace popx::codelets {

/// A vertex of type popx::`type` from popx/codelets/`family`.cpp, which is compiled if the graph
/// does not have it yet.
poplar::VertexRef addVertex(poplar::Graph& graph, poplar::ComputeSet computeSet,
                            const std::string& family, const std::string& type);

}  // namespace popx::codelets
