#include "popx/HostCallback.hpp"

#include <array>
#include <utility>

#include "poplar/exceptions.hpp"
#include "poputil/TileMapping.hpp"
#include "popx/checks/HostCallback.hpp"

namespace popx {

using poplar::Tensor;
using poplar::program::Copy;

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

/// A stream for each operand, called <id>/operand<i>, and for each result, <id>/result<i>. What
/// runs the program connects them: results must not be fetched ahead (StreamCallback::prefetch).
std::vector<Tensor> hostCallback(poplar::Graph& graph, const std::string& id,
                                 const std::vector<Tensor>& operands,
                                 const std::vector<std::string>& dtypes,
                                 const std::vector<CallbackResult>& results,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext) {
  callback::check(operands, dtypes);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Tensor& operand = operands[i];
    if (operand.numElements() == 0) continue;
    const auto stream = graph.addDeviceToHostFIFO(id + "/operand" + std::to_string(i),
                                                  operand.elementType(), operand.numElements());
    prog.add(Copy(operand.flatten(), stream, false, debugContext));
  }
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    outputs.push_back(
        graph.addVariable(typeOfDtype(results[i].dtype), results[i].shape, debugContext));
    const Tensor& output = outputs.back();
    poputil::mapTensorLinearly(graph, output);
    if (output.numElements() == 0) continue;
    const auto stream = graph.addHostToDeviceFIFO(id + "/result" + std::to_string(i),
                                                  output.elementType(), output.numElements());
    prog.add(Copy(stream, output.flatten(), false, debugContext));
  }
  return outputs;
}

}  // namespace popx
