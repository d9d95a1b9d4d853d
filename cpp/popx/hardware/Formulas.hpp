#pragma once
#include "popx/hardware/Expr.hpp"

/// For the library: operations that popops lacks, as expressions over those it has and bitcasts.
namespace popx::formulas {

/// Whether popops lacks the operation; bitcasts do not count.
bool has(expr::Op op);

/// The result of an operation on bits: of bfloat16, or a FLOAT or HALF with fewer bits. `type`: of
/// the operand. Throws for operations on values.
expr::Expr ofBits(const expr::Node& node, const expr::Expr& a, const poplar::Type& type);

/// Whether `ofBits` supports it.
bool isOfBits(expr::Op op);

/// The result of a function of one or two FLOATs, of which the second may be unused.
expr::Expr ofFloats(expr::Op op, const expr::Expr& a, const expr::Expr& b);

}  // namespace popx::formulas
