#include "popops/Cast.hpp"

#include <utility>

#include "engine/graph/GraphImpl.hpp"
#include "engine/graph/ProgramNode.hpp"
#include "popops/internal/Map.hpp"
#include "popops/internal/QuarterCast.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

namespace {

using poplar::Tensor;

bool isFloating(const poplar::Type& type) { return type == poplar::FLOAT || type == poplar::HALF; }

/// Converts `src` to `dst`, where one or both are quarters.
void castByFloats(poplar::Graph& graph, const Tensor& src, const Tensor& dst,
                  poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  const bool to_quarters = dst.hasMetadata();
  const poplar::Type other = to_quarters ? src.elementType() : dst.elementType();
  if (src.shape() != dst.shape())
    throw poputil::poplibs_error("[popops::cast] needs tensors of one shape; got " +
                                 src.shapeToString() + " and " + dst.shapeToString() +
                                 ". Reshape or broadcast one.");
  if (isFloating(other)) return internal::castQuarters(graph, src, dst, prog, debugContext);
  const Tensor floats = graph.clone(poplar::FLOAT, src, debugContext);
  if (src.hasMetadata())
    internal::castQuarters(graph, src, floats, prog, debugContext);
  else
    prog.add(cast(graph, src, floats, debugContext));
  if (to_quarters)
    internal::castQuarters(graph, floats, dst, prog, debugContext);
  else
    prog.add(cast(graph, floats, dst, debugContext));
}

}  // namespace

poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& dstType,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  if (!src.hasMetadata() && !dstType.requiresMetadata())
    return internal::map(graph, {expr::Cast(expr::_1, dstType)}, {src}, prog, debugContext).front();
  const Tensor dst = graph.clone(dstType, src, debugContext);
  castByFloats(graph, src, dst, prog, debugContext);
  return dst;
}

poplar::program::Program cast(poplar::Graph& graph, const poplar::Tensor& src,
                              const poplar::Tensor& dst, const poplar::DebugContext& debugContext) {
  poplar::program::Sequence prog({}, debugContext);
  if (src.hasMetadata() || dst.hasMetadata())
    castByFloats(graph, src, dst, prog, debugContext);
  else
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
                    const poplar::Tensor& metadata, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext) {
  if (!dstType.requiresMetadata()) return cast(graph, src, dstType, prog, debugContext);
  const Tensor dst = graph.clone(dstType, metadata, src, debugContext);
  castByFloats(graph, src, dst, prog, debugContext);
  return dst;
}

poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& dstType,
                    const poplar::Tensor& metadata, poplar::ComputeSet cs,
                    const poplar::DebugContext& debugContext) {
  poplar::program::Sequence steps(debugContext);
  const Tensor dst = cast(graph, src, dstType, metadata, steps, debugContext);
  cs.steps()->children.push_back(steps.node());
  return dst;
}

namespace {

/// While in scope, steps added to the graph round to the nearest half, whatever mode was set.
class WithNearestHalves {
 public:
  explicit WithNearestHalves(poplar::Graph& graph)
      : behaviour_(graph.impl().half), before_(std::exchange(behaviour_, {})) {}
  ~WithNearestHalves() { behaviour_ = before_; }
  WithNearestHalves(const WithNearestHalves&) = delete;

 private:
  ipujax::engine::HalfBehaviour& behaviour_;
  ipujax::engine::HalfBehaviour before_;
};

}  // namespace

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
  const WithNearestHalves nearest(graph);
  return internal::map(graph, {is_close && IsFinite(back)}, {input.reshape({})}, prog, debugContext)
      .front();
}

}  // namespace popops
