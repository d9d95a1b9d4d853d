#include "popx/HostCallback.hpp"

#include "poputil/TileMapping.hpp"
#include "popx/Native.hpp"
#include "popx/checks/HostCallback.hpp"

namespace popx {
namespace {

using native::Access;

std::uint64_t bytesOf(const poplar::Graph& graph, const poplar::Tensor& t) {
  return t.numElements() * graph.getTarget().getTypeSize(t.elementType());
}

}  // namespace

poplar::Type typeOfDtype(const std::string& dtype) {
  return poplar::Type(native::elementTypeOf(dtype));
}

std::vector<poplar::Tensor> hostCallback(poplar::Graph& graph, const std::string& id,
                                         const std::vector<poplar::Tensor>& operands,
                                         const std::vector<std::string>& dtypes,
                                         const std::vector<CallbackResult>& results,
                                         poplar::program::Sequence& prog,
                                         const poplar::DebugContext& debugContext) {
  callback::check(operands, dtypes);
  native::StepSpec step;
  step.kernel = "popx.host_callback";
  std::string names;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    step.operands.push_back({operands[i], Access::kRead, true});
    names += dtypes[i] + ",";
    bytes += bytesOf(graph, operands[i]);
  }
  std::vector<poplar::Tensor> outputs;
  for (const auto& result : results) {
    outputs.push_back(graph.addVariable(typeOfDtype(result.dtype), result.shape, debugContext));
    poputil::mapTensorLinearly(graph, outputs.back());
    step.operands.push_back({outputs.back(), Access::kWrite, true});
    names += result.dtype + ",";
    bytes += bytesOf(graph, outputs.back());
  }
  step.attributes.set("id", id).set("dtypes", names);
  step.attributes.set("num_results", static_cast<std::int64_t>(results.size()));
  // The host is notified and then answers; a feed has its batch ready, as a prefetching stream. The
  // time of the host's function is unknown.
  const unsigned requests = id.rfind("port:", 0) == 0 ? 0 : 2;
  const double syncs = requests == 0 ? 1.0 : 2.0;
  step.cost.host_cycles = syncs * graph.getTarget().getGlobalSyncCycles();
  native::addHostTransfer(step.cost, graph, static_cast<double>(bytes), requests);
  native::emit(graph, prog, std::move(step), debugContext);
  return outputs;
}

}  // namespace popx
