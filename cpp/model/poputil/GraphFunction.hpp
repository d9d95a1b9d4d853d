#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

/// Graph functions with arguments: built once, called from many places with other tensors.
namespace poputil::graphfn {

enum ArgType { InputArg, OutputArg, InOutArg, CreatedArg };

/// How one argument is passed, and a tensor that it is like.
struct ArgSig {
  ArgSig(ArgType type, poplar::Tensor tensor, std::string debugName)
      : type(type), similarTensor(std::move(tensor)), debugName(std::move(debugName)) {}
  ArgType type;
  poplar::Tensor similarTensor;
  std::string debugName;
};
using Signature = std::vector<ArgSig>;

inline ArgSig input(poplar::Tensor similar, std::string debugName = "") {
  return {InputArg, std::move(similar), std::move(debugName)};
}
inline ArgSig output(poplar::Tensor similar, std::string debugName = "") {
  return {OutputArg, std::move(similar), std::move(debugName)};
}
inline ArgSig inout(poplar::Tensor similar, std::string debugName = "") {
  return {InOutArg, std::move(similar), std::move(debugName)};
}
/// Created by the function; the caller's tensor must be empty, or have the same shape.
inline ArgSig created(std::string debugName = "") {
  return {CreatedArg, poplar::Tensor(), std::move(debugName)};
}

/// Adds a call of the function to a program. With `inlined`, each call adds the body itself. Each
/// kind of function is made from a body that takes its arguments and, optionally last, a debug
/// name: that of the function or, if inlined, of the call.
class VoidFunction {
 public:
  using Body = std::function<void(std::vector<poplar::Tensor>&, poplar::program::Sequence&,
                                  const poplar::DebugNameAndId&)>;
  VoidFunction(poplar::Graph& graph, Signature sig, Body f, bool inlined = false,
               const poplar::DebugContext& debugContext = {});
  VoidFunction(poplar::Graph& graph, Signature sig,
               std::function<void(std::vector<poplar::Tensor>&, poplar::program::Sequence&)> f,
               bool inlined = false, const poplar::DebugContext& debugContext = {});
  /// Throws poplibs_error unless there is one argument for each in the signature.
  void operator()(std::vector<poplar::Tensor>& args, poplar::program::Sequence& prog,
                  const poplar::DebugContext& debugContext = {});

 private:
  poplar::Graph& graph_;
  Signature signature_;
  Body body_;
  bool inlined_;
  std::vector<poplar::Tensor> parameters_;
  poplar::Function function_;
};

/// The same, but a call returns a program.
class ProgramFunction {
 public:
  ProgramFunction(poplar::Graph& graph, Signature sig,
                  std::function<poplar::program::Program(std::vector<poplar::Tensor>&,
                                                         const poplar::DebugNameAndId&)>
                      f,
                  bool inlined = false, const poplar::DebugContext& debugContext = {});
  ProgramFunction(poplar::Graph& graph, Signature sig,
                  std::function<poplar::program::Program(std::vector<poplar::Tensor>&)> f,
                  bool inlined = false, const poplar::DebugContext& debugContext = {});
  poplar::program::Program operator()(std::vector<poplar::Tensor>& args,
                                      const poplar::DebugContext& debugContext = {});

 private:
  VoidFunction function_;
};

/// The same with a result; each call returns its own copy.
class TensorFunction {
 public:
  TensorFunction(
      poplar::Graph& graph, Signature sig,
      std::function<poplar::Tensor(std::vector<poplar::Tensor>&, poplar::program::Sequence&,
                                   const poplar::DebugNameAndId&)>
          f,
      bool inlined = false, const poplar::DebugContext& debugContext = {});
  TensorFunction(
      poplar::Graph& graph, Signature sig,
      std::function<poplar::Tensor(std::vector<poplar::Tensor>&, poplar::program::Sequence&)> f,
      bool inlined = false, const poplar::DebugContext& debugContext = {});
  poplar::Tensor operator()(std::vector<poplar::Tensor>& args, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext = {});

 private:
  VoidFunction function_;
};

}  // namespace poputil::graphfn
