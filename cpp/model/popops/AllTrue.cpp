#include "popops/AllTrue.hpp"

#include "popops/Reduce.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

poplar::Tensor allTrue(poplar::Graph& graph, const poplar::Tensor& A,
                       poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  if (A.elementType() != poplar::BOOL) {
    throw poputil::poplibs_error("[popops::allTrue] needs a tensor of BOOL; got " +
                                 A.elementType().toString() + ". Compare its elements first.");
  }
  return reduce(graph, A.flatten(), {0}, Operation::LOGICAL_AND, prog, {debugContext, "allTrue"});
}

}  // namespace popops
