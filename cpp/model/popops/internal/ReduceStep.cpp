#include "popops/internal/ReduceStep.hpp"

#include "engine/graph/Emit.hpp"
#include "popops/internal/ReduceCost.hpp"

namespace popops::internal {

namespace engine = ipujax::engine;

void emitReduce(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
                const std::vector<std::size_t>& dims, const ReduceStep& step,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  engine::StepSpec spec;
  spec.kernel = "popops.reduce";
  const auto access = step.update ? engine::Access::kReadWrite : engine::Access::kWrite;
  spec.operands = {{in, engine::Access::kRead, false}, {out, access, true}};
  for (const poplar::Tensor* scalar : {step.scale, step.init}) {
    if (scalar) spec.operands.push_back({*scalar, engine::Access::kRead, true});
  }
  spec.attributes.set("dims", engine::Attributes::Integers(dims.begin(), dims.end()))
      .set("reducer", static_cast<std::int64_t>(step.reducer))
      .set("update", std::int64_t{step.update})
      .set("scale", std::int64_t{step.scale ? 2 : -1})
      .set("init", std::int64_t{step.init ? 2 : -1});
  auto rate = reduceRate(graph.getTarget(), in.elementType());
  if (step.cycles_per_vector > 0) rate.cycles_per_vector = step.cycles_per_vector;
  const auto& loops = *engine::reduction::loopsFor(step.reducer, in.elementType().element());
  spec.cost = reduceCost(graph, in, dims, out, sizeOf(loops.acc), rate, step.is_local);
  engine::emit(graph, prog, std::move(spec), {debugContext, "reduce"});
}

}  // namespace popops::internal
