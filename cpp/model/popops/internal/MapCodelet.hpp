#pragma once
#include <string>
#include <vector>

#include "engine/expr/ExprProgram.hpp"
#include "poplar/Tensor.hpp"
#include "popops/Expr.hpp"

namespace popops::internal {

/// A codelet in C++ that computes an expression element by element, for popc and
/// Graph::addCodelets. Field `inK` is placeholder K: a scalar where ts[K-1] has one element and
/// another tensor more, else a vector of as many elements as the vector `out`. Halves are computed
/// in float and rounded after each operation. The vertex is popops::map::Map_ and a number that its
/// text gives. Throws poplibs_error for operations without C++ text, and for DOUBLE.
std::string codeletOf(const popops::expr::Expr& expr, const std::vector<poplar::Tensor>& ts);

/// The C++ expression of an operation over a, b and c of a type, and the functions that such
/// expressions call: from the rows of ElementwiseOps.def. Empty: the type does not have it.
std::string codeletText(ipujax::engine::expr::Op op, ipujax::engine::ElementType type);
/// Definitions of what `code` calls, in an order in which they compile.
std::string codeletFunctions(const std::string& code);

}  // namespace popops::internal
