#pragma once
#include <string>

#include "popfloat/experimental/GfloatExpr.hpp"
#include "poplar/Type.hpp"
#include "poputil/VertexTemplates.hpp"

namespace popfloat {
namespace experimental {

/// The enumerators' names; throw poplibs_error for an invalid value.
std::string roundTypeToString(RoundType rmode);
std::string formatTypeToString(FormatType fmt);
std::string srDensityTypeToString(SRDensityType dist);
/// The type that holds a result; throws poplibs_error for AUTO, which depends on the format.
poplar::Type specTypeToPoplarType(SpecType specType);

/// As a template argument of a vertex, for poputil::templateVertex.
inline std::string vertexTemplateToString(RoundType rmode) {
  return "popfloat::experimental::RoundType::" + roundTypeToString(rmode);
}
inline std::string vertexTemplateToString(FormatType fmt) {
  return "popfloat::experimental::FormatType::" + formatTypeToString(fmt);
}
inline std::string vertexTemplateToString(SRDensityType dist) {
  return "popfloat::experimental::SRDensityType::" + srDensityTypeToString(dist);
}

}  // namespace experimental
}  // namespace popfloat
