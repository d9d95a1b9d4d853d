#include "poplin/MeshGrid.hpp"

#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace poplin {

poplar::Tensor linspace(poplar::Graph& graph, const poplar::Type& type, float left, float right,
                        std::size_t count, const poplar::DebugContext& debugContext) {
  if ((type != poplar::FLOAT && type != poplar::HALF) || count < 2) {
    throw poputil::poplibs_error(
        "[poplin::linspace] needs FLOAT or HALF and at least 2 numbers; got " + type.toString() +
        " and " + std::to_string(count) + ".");
  }
  std::vector<float> values(count);
  const double step = (static_cast<double>(right) - left) / static_cast<double>(count - 1);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(left + step * static_cast<double>(i));
  values.back() = right;
  const auto t = graph.addConstant(type, {count}, values, debugContext);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

std::vector<poplar::Tensor> meshgrid2d(poplar::Graph&, poplar::Tensor x, poplar::Tensor y) {
  if (x.rank() != 1 || y.rank() != 1) {
    throw poputil::poplibs_error("[poplin::meshgrid2d] needs tensors of rank 1; got " +
                                 x.shapeToString() + " and " + y.shapeToString() + ".");
  }
  const auto columns = static_cast<unsigned>(x.dim(0)), rows = static_cast<unsigned>(y.dim(0));
  return {x.expand({0}).broadcast(rows, 0), y.expand({1}).broadcast(columns, 1)};
}

}  // namespace poplin
