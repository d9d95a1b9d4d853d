#include "popx/HostCallback.hpp"

#include <array>
#include <utility>

#include "poplar/exceptions.hpp"
#include "popx/checks/HostCallback.hpp"

namespace popx {

using poplar::Tensor;

poplar::Type typeOfDtype(const std::string& dtype) {
  static const std::array<std::pair<const char*, poplar::Type>, 12> types = {
      {{"bool", poplar::BOOL},
       {"int8", poplar::SIGNED_CHAR},
       {"uint8", poplar::UNSIGNED_CHAR},
       {"int16", poplar::SHORT},
       {"uint16", poplar::UNSIGNED_SHORT},
       {"bfloat16", poplar::UNSIGNED_SHORT},
       {"int32", poplar::INT},
       {"uint32", poplar::UNSIGNED_INT},
       {"int64", poplar::LONGLONG},
       {"uint64", poplar::UNSIGNED_LONGLONG},
       {"float16", poplar::HALF},
       {"float32", poplar::FLOAT}}};
  for (const auto& [name, type] : types)
    if (dtype == name) return type;
  throw poplar::poplar_error("[popx.host_callback] needs a dtype that the device has; got " +
                             dtype + ". Cast it first.");
}

namespace {

/// Arguments or results of a host function, without arrays that have no elements.
struct Arrays {
  std::vector<poplar::HostFunctionArgument> arguments{};
  std::vector<Tensor> tensors{};

  void add(const Tensor& t) {
    if (t.numElements() == 0) return;
    arguments.emplace_back(t.elementType(), t.numElements());
    tensors.push_back(t.flatten());
  }
};

}  // namespace

/// A host function called `id`, which the program's caller connects (Engine::connectHostFunction).
/// Arrays without elements are not among its arguments and results; a function that would have
/// neither gets a result of one UNSIGNED_INT, which nothing reads.
std::vector<Tensor> hostCallback(poplar::Graph& graph, const std::string& id,
                                 const std::vector<Tensor>& operands,
                                 const std::vector<std::string>& dtypes,
                                 const std::vector<CallbackResult>& results,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext) {
  callback::check(operands, dtypes);
  Arrays in, out;
  for (const Tensor& operand : operands) in.add(operand);
  std::vector<Tensor> outputs;
  for (const auto& result : results) {
    outputs.push_back(graph.addVariable(typeOfDtype(result.dtype), result.shape,
                                        poplar::VariableMappingMethod::LINEAR, debugContext));
    out.add(outputs.back());
  }
  if (in.tensors.empty() && out.tensors.empty())
    out.add(graph.addVariable(poplar::UNSIGNED_INT, {1}, poplar::VariableMappingMethod::LINEAR,
                              debugContext));
  const auto function = graph.addHostFunction(id, in.arguments, out.arguments);
  prog.add(poplar::program::Call(function, in.tensors, out.tensors, debugContext));
  return outputs;
}

}  // namespace popx
