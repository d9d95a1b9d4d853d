#pragma once
#include <vector>

#include "popx/Native.hpp"
#include "popx/Window.hpp"

/// For the library: what only the fast build's reductions need.
namespace popx {

/// Compiles a body over k values and checks what it returns.
native::ExprProgram compileBody(const char* where, const std::vector<popops::expr::Expr>& body,
                                const std::vector<poplar::Tensor>& values,
                                const std::vector<poplar::Tensor>& inits);

/// The engine's window with the same numbers, checked for an operand of this rank.
native::Window checkedWindow(const char* where, const Window& window, std::size_t rank);

}  // namespace popx
