#include "popx/Rounding.hpp"

#include <string>
#include <utility>

#include "popx/Native.hpp"

namespace popx {
namespace {

using native::Access;
using poplar::Tensor;

Tensor words(poplar::Graph& graph, std::size_t count, const poplar::DebugContext& debug) {
  const Tensor made = graph.addVariable(poplar::UNSIGNED_INT, {count}, {debug, "key"});
  graph.setTileMapping(made, 0);
  return made;
}

/// Tiles round stochastically without any work, so no step has a cost.
native::StepSpec stepOf(const char* kernel, std::vector<native::Use> operands) {
  native::StepSpec step;
  step.kernel = kernel;
  step.operands = std::move(operands);
  return step;
}

}  // namespace

std::vector<Tensor> runKeys(poplar::Graph& graph,
                            const std::vector<std::vector<unsigned>>& replicas,
                            poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext) {
  std::vector<Tensor> keys;
  for (const auto& taken : replicas) {
    keys.push_back(makeKey(graph, debugContext));
    auto step = stepOf("popx.run_key", {{keys.back(), Access::kWrite}});
    step.attributes.set("replicas", native::Attributes::Integers(taken.begin(), taken.end()));
    native::emit(graph, prog, std::move(step), debugContext);
  }
  return keys;
}

Tensor makeKey(poplar::Graph& graph, const poplar::DebugContext& debugContext) {
  return words(graph, 2, debugContext);
}

void foldKey(poplar::Graph& graph, const Tensor& key, const Tensor& number, std::int32_t offset,
             std::int32_t factor, const Tensor& folded, poplar::program::Sequence& prog,
             const poplar::DebugContext& debugContext) {
  auto step =
      stepOf("popx.fold_key",
             {{key, Access::kRead, true}, {number, Access::kRead, true}, {folded, Access::kWrite}});
  step.attributes.set("offset", std::int64_t{offset}).set("factor", std::int64_t{factor});
  native::emit(graph, prog, std::move(step), debugContext);
}

Tensor startCount(poplar::Graph& graph, poplar::program::Sequence& prog,
                  const poplar::DebugContext& debugContext) {
  const Tensor number = words(graph, 1, debugContext);
  native::emit(graph, prog, stepOf("popx.restart_count", {{number, Access::kWrite}}), debugContext);
  return number;
}

void count(poplar::Graph& graph, const Tensor& number, poplar::program::Sequence& prog,
           const poplar::DebugContext& debugContext) {
  native::emit(graph, prog, stepOf("popx.count", {{number, Access::kReadWrite}}), debugContext);
}

void setRoundingKey(poplar::Graph& graph, const Tensor& key, std::int64_t stream) {
  graph.impl().rounding_key = key.view();
  graph.impl().rounding_stream = stream;
}

}  // namespace popx
