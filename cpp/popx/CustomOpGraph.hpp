#pragma once
#include <functional>
#include <string>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/exceptions.hpp"

/// What the functions of custom ops left in a graph, as far as a build can tell: with the IPU Model
/// their programs are read, with public names alone what they say of themselves is believed.
namespace popx::custom_op {

[[noreturn]] inline void refuse(const std::string& needs, const std::string& got,
                                const std::string& advice) {
  throw poplar::poplar_error("[custom_op] needs " + needs + "; got " + got + ". " + advice);
}

/// Libraries that are loaded afterwards find the names of Poplar that this process has.
void showPoplar();

/// Runs what the user wrote. With the model, what would end the process (abort, a division of an
/// integer by zero, memory that is not there, no stack left) is a poplar_error with the function's
/// name instead.
void guarded(const std::string& function, const std::function<void()>& call);

/// Runs the constructors of a library that this process compiled, which the loader left out.
void construct(void* library);

bool isOf(const poplar::Graph& graph, const poplar::Tensor& t);

/// Throws poplar_error for a program that writes to one of `kept`: inputs that other operations may
/// read afterwards.
void checkWritten(const std::string& function, const poplar::program::Program& program,
                  const std::vector<poplar::Tensor>& kept);

/// Steps that the user's function made belong to the line that called the op.
void addPlace(const poplar::program::Program& program, const poplar::DebugContext& debug);

}  // namespace popx::custom_op
