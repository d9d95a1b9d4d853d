#include "popnn/SpatialSoftMax.hpp"

#include "poplin/MatMul.hpp"
#include "poplin/MeshGrid.hpp"
#include "popops/ElementWise.hpp"
#include "poputil/exceptions.hpp"

namespace popnn {

using poplar::Tensor;

std::pair<Tensor, Tensor> spatialSoftMax2D(poplar::Graph& graph, poplar::program::Sequence& prog,
                                           const Tensor& fields, float temperature,
                                           bool disableSoftmax,
                                           const poplar::DebugContext& debugContext) {
  if (fields.rank() != 3)
    throw poputil::poplibs_error("[popnn::spatialSoftMax2D] needs fields [F][H][W]; got " +
                                 fields.shapeToString() + ". Reshape them.");
  const poplar::Type type = fields.elementType();
  const Tensor tau = graph.addVariable(type, {}, {debugContext, "temperature"});
  graph.setTileMapping(tau, 0);
  graph.setInitialValue(tau, temperature);
  const Tensor scaled = popops::div(graph, fields, tau, prog, {debugContext, "scaled"});
  if (!disableSoftmax)
    softmaxStableInPlace(graph, scaled.flatten(), prog, {debugContext, "softmax"});
  const Tensor x = poplin::linspace(graph, type, -1, 1, fields.dim(2), {debugContext, "x"});
  const Tensor y = poplin::linspace(graph, type, -1, 1, fields.dim(1), {debugContext, "y"});
  const auto grids = poplin::meshgrid2d(graph, x, y);  // x, y
  const Tensor coordinates = poplar::concat(
      {grids[1].flatten().expand({1}), grids[0].flatten().expand({1})}, 1);  // [H * W][2]
  const Tensor rows = scaled.reshape({fields.dim(0), fields.dim(1) * fields.dim(2)});
  return {poplin::matMul(graph, rows, coordinates, prog, {debugContext, "means"}), tau};
}

}  // namespace popnn
