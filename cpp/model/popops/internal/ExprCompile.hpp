#pragma once
#include <vector>

#include "engine/expr/ExprProgram.hpp"
#include "poplar/Type.hpp"
#include "popops/Expr.hpp"

namespace popops::internal {

/// Compiles expressions over inputs of the given types (placeholder _1 is inputs[0]) into one
/// program with one output each. A constant next to a value of another type takes that type; any
/// other type mismatch throws poplibs_error.
ipujax::engine::expr::ExprProgram compileExpr(const std::vector<popops::expr::Expr>& exprs,
                                              const std::vector<poplar::Type>& inputTypes);

}  // namespace popops::internal
