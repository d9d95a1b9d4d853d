#pragma once
#include <string>

#include "bindings/bindings.hpp"
#include "popx/Expr.hpp"

/// What each build does in its own way: model/ and sdk/ define these, and add to the module what
/// only they have.
namespace backend {

/// `source`: the user's line, "file.py:31".
DebugContext debugOf(std::string name, std::string source);
std::string sourceOf(const DebugContext& debug);

/// `values`: all elements, row-major, as a tile holds them.
Tensor addConstant(Graph& graph, Type type, const Shape& shape, const void* values,
                   const DebugContext& debug);

Tensor map(Graph& graph, const popx::expr::Expr& expr, const Tensors& ts, Sequence& prog,
           const DebugContext& debug);
void mapInPlace(Graph& graph, const popx::expr::Expr& expr, const Tensors& ts, Sequence& prog,
                const DebugContext& debug);
void fill(Graph& graph, const Tensor& t, Sequence& prog, const popx::expr::Const& value,
          const DebugContext& debug);

/// After all other functions of bindings.hpp: createTarget, machineNames, buildImage ...
void bind(py::module_& m);

}  // namespace backend
