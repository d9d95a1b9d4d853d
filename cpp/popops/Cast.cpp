#include "popops/Cast.hpp"

#include "popops/internal/Map.hpp"

namespace popops {

poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& dstType,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  return internal::map(graph, {expr::Cast(expr::_1, dstType)}, {src}, prog, debugContext).front();
}

poplar::program::Program cast(poplar::Graph& graph, const poplar::Tensor& src,
                              const poplar::Tensor& dst, const poplar::DebugContext& debugContext) {
  poplar::program::Sequence prog({}, debugContext);
  internal::mapWithOutputs(graph, {expr::Cast(expr::_1, dst.elementType())}, {src}, {dst}, prog,
                           debugContext);
  return prog;
}

}  // namespace popops
