#include "popx/checks/HostCallback.hpp"

#include "poplar/exceptions.hpp"

namespace popx::callback {

void check(const std::vector<poplar::Tensor>& operands, const std::vector<std::string>& dtypes) {
  if (dtypes.size() != operands.size()) {
    throw poplar::poplar_error("[popx.host_callback] needs one dtype per operand; got " +
                               std::to_string(operands.size()) + " operands and " +
                               std::to_string(dtypes.size()) + " dtypes. Pass one for each.");
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (typeOfDtype(dtypes[i]) != operands[i].elementType()) {
      throw poplar::poplar_error("[popx.host_callback] needs operands of their dtype; got " +
                                 operands[i].elementType().toString() + " for " + dtypes[i] +
                                 ". Cast the operand.");
    }
  }
}

}  // namespace popx::callback
