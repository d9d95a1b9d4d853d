#include "popx/hardware/Fold.hpp"

#include <string>

#include "poplar/exceptions.hpp"
#include "popx/Map.hpp"

namespace popx::fold {

void check(const char* where, const std::vector<poplar::Tensor>& ins,
           const std::vector<poplar::Tensor>& inits, const std::vector<expr::Expr>& body) {
  const auto refuse = [&](const std::string& needs, const std::string& got) {
    throw poplar::poplar_error("[" + std::string(where) + "] needs " + needs + "; got " + got +
                               ". Reshape or cast.");
  };
  if (ins.empty() || ins.size() != inits.size() || ins.size() != body.size())
    refuse("tensors with one initial value and one expression each",
           std::to_string(ins.size()) + ", " + std::to_string(inits.size()) + " and " +
               std::to_string(body.size()));
  for (std::size_t i = 0; i < ins.size(); ++i) {
    if (ins[i].shape() != ins[0].shape() || inits[i].numElements() != 1 ||
        inits[i].elementType() != ins[i].elementType())
      refuse("tensors of one shape and scalar initial values of their types",
             ins[i].shapeToString() + " and " + inits[i].shapeToString());
  }
}

std::vector<poplar::Tensor> combine(poplar::Graph& graph,
                                    const std::vector<poplar::Tensor>& earlier,
                                    const std::vector<poplar::Tensor>& later,
                                    const std::vector<expr::Expr>& body,
                                    poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext) {
  std::vector<poplar::Tensor> both = earlier;
  both.insert(both.end(), later.begin(), later.end());
  return map(graph, body, both, prog, debugContext);
}

}  // namespace popx::fold
