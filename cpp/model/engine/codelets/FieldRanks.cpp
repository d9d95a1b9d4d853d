#include "engine/codelets/FieldRanks.hpp"

#include "engine/graph/View.hpp"

namespace ipujax::engine {

std::optional<RankMisfit> findRankMisfit(const IpujaxField& field, const Connection& connection) {
  const bool vectors = field.kind == kIpujaxListOfVectors;
  if (!vectors && field.kind != kIpujaxVectorEdge) return {};
  const bool matrix = vectors && !connection.is_list;
  for (const ViewPtr& view : connection.views) {
    if (!view || view->shape.size() == (matrix ? 2 : 1)) continue;
    const char* const needs = matrix    ? "a tensor of two dimensions, or a list of tensors,"
                              : vectors ? "tensors of one dimension"
                                        : "a tensor of one dimension";
    return RankMisfit{needs, shapeText(view->shape)};
  }
  return {};
}

}  // namespace ipujax::engine
