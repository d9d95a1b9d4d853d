#include "popx/hardware/Codelets.hpp"

#include <cstdlib>

#include "poplar/exceptions.hpp"

namespace popx::codelets {
namespace {

/// The folder of codelets: the user's choice, else the one that the build found.
std::string folder() {
  const char* given = std::getenv("IPUJAX_POPX_CODELETS");
  return given && *given ? given : IPUJAX_POPX_CODELETS_FOLDER;
}

}  // namespace

poplar::VertexRef addVertex(poplar::Graph& graph, poplar::ComputeSet computeSet,
                            const std::string& family, const std::string& type) {
  const std::string name = "popx::" + type;
  try {
    return graph.addVertex(computeSet, name);
  } catch (const poplar::unknown_vertex_type&) {
    graph.addCodelets(folder() + "/" + family + ".cpp");
    return graph.addVertex(computeSet, name);
  }
}

}  // namespace popx::codelets
