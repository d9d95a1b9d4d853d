#include "popx/DynamicSlice.hpp"

#include "popx/Native.hpp"

namespace popx {

poplar::Tensor dynamicSlice(poplar::Graph& graph, const poplar::Tensor& t,
                            const poplar::Tensor& offset, const std::vector<std::size_t>& dims,
                            const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext) {
  return native::clampedSlice(graph, t, offset, dims, sizes, prog, debugContext);
}

void dynamicUpdate(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s,
                   const poplar::Tensor& offset, const std::vector<std::size_t>& dims,
                   const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext) {
  native::clampedUpdate(graph, t, s, offset, dims, sizes, prog, debugContext);
}

}  // namespace popx
