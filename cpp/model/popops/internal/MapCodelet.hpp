#pragma once
#include <string>
#include <vector>

#include "engine/expr/ExprProgram.hpp"
#include "poplar/Tensor.hpp"
#include "popops/Expr.hpp"

namespace popops::internal {

/// A codelet in C++ that computes an expression element by element, for popc and
/// Graph::addCodelets. Field `inK` is placeholder K: a scalar if ts[K-1] has one element and
/// another tensor more, else a vector of as many elements as the vector `out`. Halves are computed
/// in float and rounded after each operation. The vertex is named popops::map::Map_ and a hash of
/// its text. Throws poplibs_error for operations without C++ text, and for DOUBLE.
std::string codeletOf(const popops::expr::Expr& expr, const std::vector<poplar::Tensor>& ts);

/// The C++ expression of an operation over a, b and c of a type, from the rows of
/// ElementwiseOps.def. Empty if the type does not have the operation.
std::string codeletText(ipujax::engine::expr::Op op, ipujax::engine::ElementType type);
/// Definitions of the functions that `code` calls, in an order in which they compile.
std::string codeletFunctions(const std::string& code);

}  // namespace popops::internal
