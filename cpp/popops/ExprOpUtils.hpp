#pragma once
#include <iosfwd>

#include "popops/ExprOp.hpp"

/// The names of operations, by `using namespace popops::expr::ostream_ext`.
namespace popops::expr::ostream_ext {

std::ostream& operator<<(std::ostream& os, const UnaryOpType& t);
std::ostream& operator<<(std::ostream& os, const BinaryOpType& t);
std::ostream& operator<<(std::ostream& os, const TernaryOpType& t);

}  // namespace popops::expr::ostream_ext
