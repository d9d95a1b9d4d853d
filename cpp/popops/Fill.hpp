#pragma once
#include <type_traits>

#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popops/Expr.hpp"

namespace popops {

/// Writes one value to every element, for any type of element. For the library.
void fillWith(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
              const expr::Const& value, const poplar::DebugContext& debugContext);

template <typename FillValueType>
requires std::is_arithmetic_v<FillValueType>
void fill(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
          FillValueType fillValue, const poplar::DebugContext& debugContext = {}) {
  fillWith(graph, t, prog, expr::Const(t.elementType(), fillValue), debugContext);
}

}  // namespace popops
