#include "popx/VariableUse.hpp"

#include <cstddef>
#include <cstdint>

namespace popx {

void setVariableUse(poplar::Graph& graph, const poplar::Tensor& t, VariableUse use) {
  auto& variables = graph.impl().variables;
  forEachRun(*t.view(), [&](std::uint32_t variable, std::int64_t, std::size_t) {
    variables[variable].use = use;
  });
}

}  // namespace popx
