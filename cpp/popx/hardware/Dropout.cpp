#include "popx/Dropout.hpp"

#include "popops/DynamicSlice.hpp"
#include "popops/ElementWise.hpp"
#include "poprand/RandomGen.hpp"
#include "popx/checks/Dropout.hpp"

namespace popx {
namespace {

/// The block's part of the mask, 1 where a dimension broadcasts.
poplar::Tensor partOf(poplar::Graph& graph, const poplar::Tensor& mask, const poplar::Tensor& input,
                      const poplar::Tensor& starts, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext) {
  std::vector<std::size_t> dims, sizes;
  std::vector<poplar::Tensor> offsets;
  for (unsigned d = 0; d < input.rank(); ++d) {
    if (mask.dim(d) <= input.dim(d)) continue;
    if (mask.dim(d) == 1) continue;
    dims.push_back(d);
    sizes.push_back(input.dim(d));
    offsets.push_back(starts.reinterpret(poplar::UNSIGNED_INT).slice(d, d + 1));
  }
  if (dims.empty()) return mask;
  return popops::dynamicSlice(graph, mask, poplar::concat(offsets), dims, sizes, prog,
                              debugContext);
}

}  // namespace

poplar::Tensor dropoutBlock(poplar::Graph& graph, const poplar::Tensor& seed,
                            const poplar::Tensor& input, const poplar::Tensor& starts,
                            const std::vector<std::size_t>& maskShape, double keepProbability,
                            double scale, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext) {
  namespace pe = popops::expr;
  dropout::check(seed, input, starts, maskShape, keepProbability);
  if (input.numElements() == 0) return input;
  const poplar::DebugContext debug(debugContext, "dropout");
  const poplar::Tensor whole =
      graph.addVariable(poplar::HALF, maskShape, poplar::VariableMappingMethod::LINEAR, debug);
  const poplar::Tensor flat_seed = seed.flatten();
  const poplar::Tensor mask =
      poprand::bernoulli(graph, &flat_seed, 0, whole, poplar::HALF, keepProbability, prog, debug);
  poplar::Tensor part = partOf(graph, mask, input, starts, prog, debug);
  for (unsigned d = 0; d < input.rank(); ++d)
    if (part.dim(d) != input.dim(d)) part = part.broadcast(static_cast<unsigned>(input.dim(d)), d);
  const auto scaled =
      pe::Cast(pe::Mul(pe::Cast(pe::_1, poplar::FLOAT), pe::Const(static_cast<float>(scale))),
               input.elementType());
  const auto zero = pe::Cast(pe::Const(0.0f), input.elementType());
  return popops::map(graph, pe::Select(scaled, zero, pe::Cast(pe::_2, poplar::BOOL)), {input, part},
                     prog, debug);
}

}  // namespace popx
