#pragma once
#include <string>

#include "bindings/bindings.hpp"
#include "popx/Expr.hpp"

/// Functions that each build defines in its own way, in model/ or sdk/. `bind` adds functions that
/// only this build has.
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

/// Called after all functions of bindings.hpp; binds createTarget, machineNames, buildImage ...
void bind(py::module_& m);

}  // namespace backend
