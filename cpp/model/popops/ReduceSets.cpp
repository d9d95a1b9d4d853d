#include "popops/Reduce.hpp"

// Reductions in the caller's compute sets, and several at once.
namespace popops {
namespace {

using poplar::ComputeSet;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;

/// A compute set that runs what `add` adds to a program.
template <class Add>
ComputeSet computeSetOf(Graph& graph, const poplar::DebugContext& debugContext, const Add& add) {
  Sequence steps(debugContext);
  add(steps);
  return ComputeSet(graph.addComputeSet(debugContext).getId(), steps.node());
}

}  // namespace

Tensor reduce(Graph& graph, const Tensor& in, const poplar::Type& outType,
              const std::vector<std::size_t>& dims, ReduceParams params,
              std::vector<ComputeSet>& css, const poplar::DebugContext& debugContext,
              const poplar::OptionFlags& options) {
  Tensor result;
  css.push_back(computeSetOf(graph, debugContext, [&](Sequence& steps) {
    result = reduce(graph, in, outType, dims, params, steps, debugContext, options);
  }));
  return result;
}

Tensor reduce(Graph& graph, const Tensor& in, const std::vector<std::size_t>& dims,
              ReduceParams params, std::vector<ComputeSet>& css,
              const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  return reduce(graph, in, in.elementType(), dims, std::move(params), css, debugContext, options);
}

void reduceWithOutput(Graph& graph, const Tensor& in, const Tensor& out,
                      const std::vector<std::size_t>& dims, ReduceParams params,
                      std::vector<ComputeSet>& css, const poplar::DebugContext& debugContext,
                      const poplar::OptionFlags& options) {
  css.push_back(computeSetOf(graph, debugContext, [&](Sequence& steps) {
    reduceWithOutput(graph, in, out, dims, params, steps, debugContext, options);
  }));
}

void reduceMany(Graph& graph, const std::vector<SingleReduceOp>& reductions,
                std::vector<Tensor>& outputs, Sequence& prog,
                const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  outputs.resize(reductions.size());
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    const SingleReduceOp& op = reductions[i];
    const poplar::DebugContext name(debugContext, op.debugName);
    if (outputs[i].valid()) {
      reduceWithOutput(graph, op.in, outputs[i], op.dims, op.params, prog, name, options);
    } else {
      const poplar::Type type = op.useOutType ? op.accumulateType : op.in.elementType();
      outputs[i] = reduce(graph, op.in, type, op.dims, op.params, prog, name, options);
    }
  }
}

}  // namespace popops
