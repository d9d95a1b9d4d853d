#pragma once
#include <string>

namespace poplar {
namespace layout {

/// How a vector field lies in a vertex's state.
enum class Vector { NotAVector, Span, ShortSpan, OnePtr, ScaledPtr32, ScaledPtr64, ScaledPtr128 };
/// How a list of vectors does.
enum class VectorList {
  NotAVector,
  OnePtr,
  ScaledPtr32,
  ScaledPtr64,
  ScaledPtr128,
  DeltaN,
  DeltaNElements
};

std::string to_string(Vector layout);
std::string to_string(VectorList layout);

}  // namespace layout
}  // namespace poplar
