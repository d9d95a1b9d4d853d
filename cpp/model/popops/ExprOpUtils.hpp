#pragma once
#include <iosfwd>
#include <string>

#include "popops/ExprOp.hpp"
#include "poputil/VertexTemplates.hpp"

/// Print the names of operations; enable with `using namespace popops::expr::ostream_ext`.
namespace popops::expr::ostream_ext {

std::ostream& operator<<(std::ostream& os, const UnaryOpType& t);
std::ostream& operator<<(std::ostream& os, const BinaryOpType& t);
std::ostream& operator<<(std::ostream& os, const TernaryOpType& t);

}  // namespace popops::expr::ostream_ext

/// Operations as written in the names of vertices; poputil::templateVertex finds these functions.
namespace popops::expr {

std::string vertexTemplateToString(const UnaryOpType& type);
std::string vertexTemplateToString(const BinaryOpType& type);
std::string vertexTemplateToString(const TernaryOpType& type);

}  // namespace popops::expr
