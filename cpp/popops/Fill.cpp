#include "popops/Fill.hpp"

#include "popops/Zero.hpp"
#include "popops/internal/Map.hpp"

namespace popops {

void fillWith(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
              const expr::Const& value, const poplar::DebugContext& debugContext) {
  internal::mapWithOutputs(graph, {value}, {}, {t}, prog, debugContext);
}

void zero(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
          const poplar::DebugContext& debugContext) {
  fill(graph, t, prog, 0, debugContext);
}

}  // namespace popops
