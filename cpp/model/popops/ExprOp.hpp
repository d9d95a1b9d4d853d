#pragma once
#include "engine/ops/ExprOp.hpp"

/// The enums' values are the engine's operations: rows of engine/ops/ElementwiseOps.def.
namespace popops::expr {

enum class UnaryOpType {
#define UNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) TYPE = static_cast<int>(ipujax::engine::expr::Op::k##Name),
#include "engine/ops/ElementwiseOps.def"
};

enum class BinaryOpType {
#define BINARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) TYPE = static_cast<int>(ipujax::engine::expr::Op::k##Name),
#include "engine/ops/ElementwiseOps.def"
};

enum class TernaryOpType {
#define TERNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) TYPE = static_cast<int>(ipujax::engine::expr::Op::k##Name),
#include "engine/ops/ElementwiseOps.def"
};

}  // namespace popops::expr
