#include "popx/VariableUse.hpp"

#include <cstddef>
#include <cstdint>

#include "popx/Native.hpp"

namespace popx {

static_assert(static_cast<int>(VariableUse::kStash) ==
              static_cast<int>(native::VariableUse::kStash));

void setVariableUse(poplar::Graph& graph, const poplar::Tensor& t, VariableUse use) {
  auto& variables = graph.impl().variables;
  forEachRun(*t.view(), [&](std::uint32_t variable, std::int64_t, std::size_t) {
    variables[variable].use = static_cast<native::VariableUse>(use);
  });
}

}  // namespace popx
