#pragma once
#include <functional>
#include <string>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/exceptions.hpp"

/// Checks what the functions of custom ops left in a graph, as far as a build can. With the IPU
/// Model it reads their programs; with public names alone it trusts their metadata.
namespace popx::custom_op {

[[noreturn]] inline void refuse(const std::string& needs, const std::string& got,
                                const std::string& advice) {
  throw poplar::poplar_error("[custom_op] needs " + needs + "; got " + got + ". " + advice);
}

/// Lets libraries that are loaded afterwards find this process's symbols of Poplar.
void showPoplar();

/// Runs the user's function. With the model, faults that would end the process (abort, integer
/// division by zero, invalid memory access, stack overflow) become a poplar_error with the
/// function's name.
void guarded(const std::string& function, const std::function<void()>& call);

/// Runs the constructors of a library that this process compiled, which the loader left out.
void construct(void* library);

bool isOf(const poplar::Graph& graph, const poplar::Tensor& t);

/// Throws poplar_error for a program that writes to one of `kept`: inputs that other operations may
/// read afterwards.
void checkWritten(const std::string& function, const poplar::program::Program& program,
                  const std::vector<poplar::Tensor>& kept);

/// Attributes steps that the user's function made to the line that called the op.
void addPlace(const poplar::program::Program& program, const poplar::DebugContext& debug);

}  // namespace popx::custom_op
