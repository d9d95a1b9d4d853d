#pragma once
#include <ostream>

namespace poplar {

/// How Graph::clone lays out the new tensor.
enum class TensorCloneMethod {
  PRESERVE_ORDER_AND_ALIASES,
  CREATE_NEW_ORDER,
  PRESERVE_ORDER_UNLESS_ALIASES,
  GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES,
};

/// How Graph::cloneN arranges the clones: one after another, or with the clones of each contiguous
/// region of a tile next to each other. The model lays out memory by tile in both cases.
enum class TensorCloneDuplicationMethod {
  DUPLICATE_BY_OUTER_DIMENSION,
  DUPLICATE_BY_TILE_CONTIGUOUS_REGION,
};

const char* toString(TensorCloneMethod method);
const char* toString(TensorCloneDuplicationMethod method);
inline std::ostream& operator<<(std::ostream& os, TensorCloneMethod method) {
  return os << toString(method);
}
inline std::ostream& operator<<(std::ostream& os, TensorCloneDuplicationMethod method) {
  return os << toString(method);
}

}  // namespace poplar
