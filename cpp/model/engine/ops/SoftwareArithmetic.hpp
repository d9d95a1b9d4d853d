#pragma once
#include "engine/ElementType.hpp"
#include "engine/ops/ExprOp.hpp"

/// Cost for a worker of one operation on a type that an IPU lacks: double as calls of software
/// floating point, 64-bit integers as pairs of words.
namespace ipujax::engine {

constexpr bool isSoftware(ElementType type) {
  return type == ElementType::kDouble || type == ElementType::kInt64 ||
         type == ElementType::kUInt64;
}

/// Cycles of one multiply and add, as in products, convolutions and sums.
double softwareMultiplyAddCycles(ElementType type);
double softwareAddCycles(ElementType type);
/// Cycles of one operation on one element, loads and stores included.
double softwareCycles(expr::Op op, ElementType type);

}  // namespace ipujax::engine
