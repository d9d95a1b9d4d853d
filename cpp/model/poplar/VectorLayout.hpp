#pragma once
#include <string>

namespace poplar {
namespace layout {

/// Layout of a vector field in a vertex's state.
enum class Vector { NotAVector, Span, ShortSpan, OnePtr, ScaledPtr32, ScaledPtr64, ScaledPtr128 };
/// Layout of a list of vectors.
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
