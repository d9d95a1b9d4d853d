#include "poplar/TensorCloneMethod.hpp"

namespace poplar {

const char* toString(TensorCloneMethod method) {
  switch (method) {
    case TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES:
      return "PRESERVE_ORDER_AND_ALIASES";
    case TensorCloneMethod::CREATE_NEW_ORDER:
      return "CREATE_NEW_ORDER";
    case TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES:
      return "PRESERVE_ORDER_UNLESS_ALIASES";
    case TensorCloneMethod::GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES:
      return "GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES";
  }
  return "";
}

const char* toString(TensorCloneDuplicationMethod method) {
  return method == TensorCloneDuplicationMethod::DUPLICATE_BY_OUTER_DIMENSION
             ? "DUPLICATE_BY_OUTER_DIMENSION"
             : "DUPLICATE_BY_TILE_CONTIGUOUS_REGION";
}

}  // namespace poplar
