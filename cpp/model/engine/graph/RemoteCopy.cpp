#include "engine/graph/RemoteCopy.hpp"

#include <string>
#include <utility>

#include "engine/graph/Planning.hpp"

namespace ipujax::engine {

void appendRemoteCopy(const GraphScope& graph, ProgramNode& sequence, const ViewPtr& buffer,
                      const ViewPtr& tensor, const ViewPtr& offsets, bool to_remote,
                      Outside outside, const DebugContext& debugContext) {
  const Access access = to_remote ? Access::kWrite : Access::kRead;
  const Access other = to_remote ? Access::kRead : Access::kWrite;
  StepSpec step;
  const auto bytes = static_cast<double>(tensor->numElements() * sizeOf(tensor->type));
  addStreamingTransfer(step.cost, graph.system.machine, bytes);
  if (graph.impl.isRemote(*tensor)) addStreamingTransfer(step.cost, graph.system.machine, bytes);
  if (!offsets) {
    const ViewPtr whole = share(reshapeView(*buffer, tensor->shape));
    step.kernel = "engine.copy";
    step.operands = {{tensor, other}, {whole, access}};
    if (!to_remote) std::swap(step.operands[0], step.operands[1]);
    return emit(graph, sequence, std::move(step), debugContext);
  }
  const std::size_t count = offsets->numElements();
  const std::size_t elements = buffer->shape[1];
  const ViewPtr indices = share(reshapeView(*offsets, {count, 1}));
  const ViewPtr rows = share(reshapeView(*tensor, {count, elements}));
  step.attributes.set("window", Attributes::Integers{1}).set("map", Attributes::Integers{0});
  step.attributes.set("batching", Attributes::Integers{-1});
  step.attributes.set("sizes", Attributes::Integers{1, static_cast<std::int64_t>(elements)});
  step.attributes.set("clamp", static_cast<std::int64_t>(outside));
  if (to_remote) {
    step.kernel = "engine.remote_write";
    step.attributes.set("body", std::string("replace")).set("unique", std::int64_t{0});
    step.operands = {{buffer, Access::kReadWrite}, {indices, Access::kRead}, {rows, Access::kRead}};
  } else {
    step.kernel = "engine.remote_read";
    step.operands = {{buffer, Access::kRead}, {indices, Access::kRead}, {rows, Access::kWrite}};
  }
  emit(graph, sequence, std::move(step), debugContext);
}

}  // namespace ipujax::engine
