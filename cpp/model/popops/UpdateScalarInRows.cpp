#include "popops/UpdateScalarInRows.hpp"

#include <limits>
#include <string>

#include "popops/ElementWise.hpp"
#include "popops/EncodingConstants.hpp"
#include "popops/Iota.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

void updateScalarInRows(poplar::Graph& graph, const poplar::Tensor& params,
                        const poplar::Tensor& indices, poplar::program::Sequence& program,
                        const poplar::DebugContext& debugContext) {
  const auto type = params.elementType();
  if (params.rank() != 2 || indices.rank() != 1 || indices.dim(0) != params.dim(0) ||
      (type != poplar::FLOAT && type != poplar::HALF) ||
      indices.elementType() != poplar::UNSIGNED_INT) {
    throw poputil::poplibs_error(
        "[popops::updateScalarInRows] needs params [n, columns] of FLOAT or HALF and indices [n] "
        "of UNSIGNED_INT; got " +
        params.shapeToString() + " " + type.toString() + " and " + indices.shapeToString() + " " +
        indices.elementType().toString() + ". Reshape or cast them.");
  }
  const poplar::DebugContext context{debugContext, "updateScalarInRows"};
  const auto columns = static_cast<unsigned>(params.dim(1));
  const auto at = graph.addVariable(poplar::UNSIGNED_INT, {params.dim(1)}, context);
  poputil::mapTensorLinearly(graph, at);
  iota(graph, at, 0u, program, context);
  const expr::Const zero(type, 0.0f), one(type, 1.0f);
  const expr::Const nan(type, std::numeric_limits<float>::quiet_NaN());
  const auto less = expr::Select(one, zero, expr::Equal(expr::_2, expr::_3));
  const auto is_inside = expr::Or(expr::Lt(expr::_2, expr::Const(columns)),
                                  expr::Equal(expr::_2, expr::Const(MASKED_LABEL_CODE)));
  mapInPlace(graph, expr::Select(expr::Sub(expr::_1, less), nan, is_inside),
             {params, indices.expand({1}), at}, program, context);
}

}  // namespace popops
