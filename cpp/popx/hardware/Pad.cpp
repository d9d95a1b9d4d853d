#include "popx/Pad.hpp"

#include "popx/checks/Pad.hpp"

namespace popx {

/// Writes the value everywhere, then the kept elements to their places.
poplar::Tensor pad(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& value,
                   const std::vector<std::int64_t>& low, const std::vector<std::int64_t>& high,
                   const std::vector<std::int64_t>& interior, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext) {
  using poplar::program::Copy;
  const padding::Plan plan = padding::planOf(t, value, low, high, interior);
  if (plan.kept.shape() == plan.shape) return plan.kept;
  const auto out = graph.addVariable(t.elementType(), plan.shape,
                                     poplar::VariableMappingMethod::LINEAR, debugContext);
  if (out.numElements() == 0) return out;
  const auto count = static_cast<unsigned>(out.numElements());
  prog.add(Copy(value.reshape({1}).broadcast(count, 0), out.flatten()));
  if (plan.kept.numElements() > 0) prog.add(Copy(plan.kept, plan.placeIn(out)));
  return out;
}

}  // namespace popx
