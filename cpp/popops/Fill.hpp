#pragma once
#include <type_traits>
#include <vector>

#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popops/Expr.hpp"

namespace popops {

/// Writes one value to every element, for any type of element. For the library.
void fillWith(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
              const expr::Const& value, const poplar::DebugContext& debugContext);

template <typename FillValueType, class = std::enable_if_t<std::is_arithmetic_v<FillValueType>>>
void fill(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
          FillValueType fillValue, const poplar::DebugContext& debugContext = {}) {
  fillWith(graph, t, prog, expr::Const(t.elementType(), fillValue), debugContext);
}

template <typename FillValueType>
void fill(poplar::Graph& graph, const std::vector<poplar::Tensor>& ts,
          poplar::program::Sequence& prog, FillValueType fillValue,
          const poplar::DebugContext& debugContext = {}) {
  for (const auto& t : ts) fill(graph, t, prog, fillValue, debugContext);
}

}  // namespace popops
