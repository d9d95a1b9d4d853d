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

const char* toString(TensorCloneMethod method);
inline std::ostream& operator<<(std::ostream& os, TensorCloneMethod method) {
  return os << toString(method);
}

}  // namespace poplar
