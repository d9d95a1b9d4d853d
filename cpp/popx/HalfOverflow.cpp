#include "popx/HalfOverflow.hpp"

#include "poplar/exceptions.hpp"
#include "popx/Native.hpp"

namespace popx {

void setHalfOverflow(poplar::Graph& graph, const std::string& behaviour,
                     poplar::program::Sequence& /*prog*/) {
  using Overflow = native::HalfBehaviour::Overflow;
  auto& overflow = graph.impl().half.overflow;
  if (behaviour == "infinity")
    overflow = Overflow::kInfinity;
  else if (behaviour == "saturate")
    overflow = Overflow::kSaturate;
  else if (behaviour == "nan")
    overflow = Overflow::kNan;
  else
    throw poplar::poplar_error("[setHalfOverflow] needs infinity, saturate or nan; got " +
                               behaviour + ". Use one of these.");
}

}  // namespace popx
