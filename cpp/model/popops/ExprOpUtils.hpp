#pragma once
#include <iosfwd>
#include <string>

#include "popops/ExprOp.hpp"
#include "poputil/VertexTemplates.hpp"

/// The names of operations, by `using namespace popops::expr::ostream_ext`.
namespace popops::expr::ostream_ext {

std::ostream& operator<<(std::ostream& os, const UnaryOpType& t);
std::ostream& operator<<(std::ostream& os, const BinaryOpType& t);
std::ostream& operator<<(std::ostream& os, const TernaryOpType& t);

}  // namespace popops::expr::ostream_ext

/// As they stand in the names of vertices; poputil::templateVertex finds them.
namespace popops::expr {

std::string vertexTemplateToString(const UnaryOpType& type);
std::string vertexTemplateToString(const BinaryOpType& type);
std::string vertexTemplateToString(const TernaryOpType& type);

}  // namespace popops::expr
