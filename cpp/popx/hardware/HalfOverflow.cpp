#include "popx/HalfOverflow.hpp"

#include "poplar/CSRFunctions.hpp"
#include "poplar/exceptions.hpp"

namespace popx {

void setHalfOverflow(poplar::Graph& graph, const std::string& behaviour,
                     poplar::program::Sequence& prog) {
  if (behaviour == "infinity") return;
  if (behaviour != "saturate" && behaviour != "nan")
    throw poplar::poplar_error("[setHalfOverflow] needs infinity, saturate or nan; got " +
                               behaviour + ". Use one of these.");
  poplar::setFloatingPointBehaviour(
      graph, prog, poplar::FloatingPointBehaviour(false, false, false, false, behaviour == "nan"));
}

}  // namespace popx
