#pragma once
#include "engine/ElementType.hpp"
#include "engine/ops/ExprOp.hpp"

/// What one operation on a type that an IPU lacks costs a worker: double as calls of software
/// floating point, 64-bit integers as pairs of words.
namespace ipujax::engine {

constexpr bool isSoftware(ElementType type) {
  return type == ElementType::kDouble || type == ElementType::kInt64 ||
         type == ElementType::kUInt64;
}

/// Cycles of one multiply and add, as products, convolutions and sums are made of.
double softwareMultiplyAddCycles(ElementType type);
double softwareAddCycles(ElementType type);
/// Cycles of one operation on one element, loads and stores included.
double softwareCycles(expr::Op op, ElementType type);

}  // namespace ipujax::engine
