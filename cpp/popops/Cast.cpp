#include "popops/Cast.hpp"

#include "engine/graph/ProgramNode.hpp"
#include "popops/internal/Map.hpp"
#include "poputil/exceptions.hpp"

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

void castWithOutput(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Tensor& dst,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  prog.add(cast(graph, src, dst, debugContext));
}

void cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Tensor& dst,
          poplar::ComputeSet cs) {
  cs.steps()->children.push_back(cast(graph, src, dst).node());
}

poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& dstType,
                    poplar::ComputeSet cs, const poplar::DebugContext& debugContext) {
  poplar::program::Sequence steps(debugContext);
  const poplar::Tensor dst = cast(graph, src, dstType, steps, debugContext);
  cs.steps()->children.push_back(steps.node());
  return dst;
}

poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& dstType,
                    const poplar::Tensor&, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext) {
  if (dstType.requiresMetadata())
    throw poputil::poplibs_error(
        "[popops::cast] needs a type that tensors of the model have; got quarters with metadata. "
        "Use HALF.");
  return cast(graph, src, dstType, prog, debugContext);
}

poplar::Tensor checkAccuracyWhenCast(poplar::Graph& graph, const poplar::Tensor& input,
                                     poplar::Type outputType, double tolerance,
                                     poplar::program::Sequence& prog,
                                     const poplar::DebugContext& debugContext) {
  if (input.elementType() != poplar::FLOAT || outputType != poplar::HALF ||
      input.numElements() != 1)
    throw poputil::poplibs_error("[popops::checkAccuracyWhenCast] needs one FLOAT and HALF; got " +
                                 input.elementType().toString() + " " + input.shapeToString() +
                                 " and " + outputType.toString() + ". Use FLOAT and HALF.");
  using namespace expr;
  const auto back = Cast(Cast(_1, poplar::HALF), poplar::FLOAT);
  const auto is_close = Abs(back - _1) <= Abs(_1) * Const(static_cast<float>(tolerance));
  return internal::map(graph, {is_close && IsFinite(back)}, {input.reshape({})}, prog, debugContext)
      .front();
}

}  // namespace popops
