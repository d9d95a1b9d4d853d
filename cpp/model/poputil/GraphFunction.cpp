#include "poputil/GraphFunction.hpp"

#include "poputil/exceptions.hpp"

namespace poputil::graphfn {

using poplar::DebugContext;
using poplar::DebugNameAndId;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Program;
using poplar::program::Sequence;

namespace {

Signature withResult(Signature signature) {
  signature.push_back(created("result"));
  return signature;
}

}  // namespace

VoidFunction::VoidFunction(Graph& graph, Signature sig,
                           std::function<void(std::vector<Tensor>&, Sequence&)> f, bool inlined,
                           const DebugContext& debugContext)
    : VoidFunction(graph, std::move(sig),
                   Body([f = std::move(f)](std::vector<Tensor>& args, Sequence& prog,
                                           const DebugNameAndId&) { f(args, prog); }),
                   inlined, debugContext) {}

VoidFunction::VoidFunction(Graph& graph, Signature sig, Body f, bool inlined,
                           const DebugContext& debugContext)
    : graph_(graph), signature_(std::move(sig)), body_(std::move(f)), inlined_(inlined) {
  if (inlined_) return;
  for (const ArgSig& arg : signature_) {
    parameters_.push_back(arg.type == CreatedArg
                              ? Tensor()
                              : graph_.clone(arg.similarTensor, {debugContext, arg.debugName}));
  }
  Sequence prog(debugContext);
  body_(parameters_, prog, DebugNameAndId(debugContext.getPathName()));
  function_ = graph_.addFunction(prog);
}

void VoidFunction::operator()(std::vector<Tensor>& args, Sequence& prog,
                              const DebugContext& debugContext) {
  if (args.size() != signature_.size()) {
    throw poplibs_error("[poputil::graphfn] needs " + std::to_string(signature_.size()) +
                        " arguments; got " + std::to_string(args.size()) +
                        ". Pass one for each of the signature.");
  }
  if (inlined_) return body_(args, prog, DebugNameAndId(debugContext.getPathName()));
  for (std::size_t i = 0; i < args.size(); ++i) {
    const ArgType type = signature_[i].type;
    if (type == InputArg || type == InOutArg)
      prog.add(Copy(args[i], parameters_[i], false, debugContext));
  }
  prog.add(poplar::program::Call(function_, debugContext));
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (signature_[i].type == InputArg) continue;
    if (!args[i].valid())
      args[i] = graph_.clone(parameters_[i], {debugContext, signature_[i].debugName});
    prog.add(Copy(parameters_[i], args[i], false, debugContext));
  }
}

ProgramFunction::ProgramFunction(Graph& graph, Signature sig,
                                 std::function<Program(std::vector<Tensor>&)> f, bool inlined,
                                 const DebugContext& debugContext)
    : ProgramFunction(
          graph, std::move(sig),
          [f = std::move(f)](std::vector<Tensor>& args, const DebugNameAndId&) { return f(args); },
          inlined, debugContext) {}

ProgramFunction::ProgramFunction(
    Graph& graph, Signature sig,
    std::function<Program(std::vector<Tensor>&, const DebugNameAndId&)> f, bool inlined,
    const DebugContext& debugContext)
    : function_(
          graph, std::move(sig),
          [f = std::move(f)](std::vector<Tensor>& args, Sequence& prog,
                             const DebugNameAndId& name) { prog.add(f(args, name)); },
          inlined, debugContext) {}

Program ProgramFunction::operator()(std::vector<Tensor>& args, const DebugContext& debugContext) {
  Sequence prog(debugContext);
  function_(args, prog, debugContext);
  return prog;
}

TensorFunction::TensorFunction(Graph& graph, Signature sig,
                               std::function<Tensor(std::vector<Tensor>&, Sequence&)> f,
                               bool inlined, const DebugContext& debugContext)
    : TensorFunction(
          graph, std::move(sig),
          [f = std::move(f)](std::vector<Tensor>& args, Sequence& prog, const DebugNameAndId&) {
            return f(args, prog);
          },
          inlined, debugContext) {}

TensorFunction::TensorFunction(
    Graph& graph, Signature sig,
    std::function<Tensor(std::vector<Tensor>&, Sequence&, const DebugNameAndId&)> f, bool inlined,
    const DebugContext& debugContext)
    : function_(
          graph, withResult(std::move(sig)),
          [f = std::move(f)](std::vector<Tensor>& args, Sequence& prog,
                             const DebugNameAndId& name) {
            std::vector<Tensor> given(args.begin(), args.end() - 1);
            args.back() = f(given, prog, name);
          },
          inlined, debugContext) {}

Tensor TensorFunction::operator()(std::vector<Tensor>& args, Sequence& prog,
                                  const DebugContext& debugContext) {
  std::vector<Tensor> all = args;
  all.emplace_back();
  function_(all, prog, debugContext);
  std::copy(all.begin(), all.end() - 1, args.begin());
  return all.back();
}

}  // namespace poputil::graphfn
