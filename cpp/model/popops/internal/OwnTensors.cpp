#include "popops/internal/OwnTensors.hpp"

#include "poputil/exceptions.hpp"

namespace popops::internal {

void needOwn(const poplar::Graph& graph, poplar::ArrayRef<poplar::Tensor> ts, const char* where) {
  for (const auto& t : ts) {
    if (t.valid() && t.graphImpl() == &graph.impl()) continue;
    throw poputil::poplibs_error(
        std::string("[") + where + "] needs tensors of the graph that it adds to; got " +
        (t.valid() ? "one of another" : "an empty Tensor") + ". Make all of them with one graph.");
  }
}

}  // namespace popops::internal
