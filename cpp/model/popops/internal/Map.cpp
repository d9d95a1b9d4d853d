#include "popops/internal/Map.hpp"

#include <algorithm>

#include "engine/build/VertexTypes.hpp"
#include "engine/expr/HalfRounding.hpp"
#include "engine/graph/Emit.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "popops/internal/ElementWiseCost.hpp"
#include "popops/internal/ExprCompile.hpp"
#include "popops/internal/OwnTensors.hpp"
#include "popops/internal/WorkerSeeds.hpp"
#include "poputil/exceptions.hpp"

namespace popops::internal {

namespace {
using ipujax::engine::Access;
using ipujax::engine::shapeText;
using ipujax::engine::StepSpec;
using ipujax::engine::expr::ExprProgram;
using poplar::Tensor;

std::vector<std::size_t> withoutLeadingOnes(const std::vector<std::size_t>& shape) {
  return {std::ranges::find_if(shape, [](std::size_t size) { return size != 1; }), shape.end()};
}

struct Plan {
  ExprProgram program;
  std::vector<Tensor> inputs;  ///< of the program, of the common shape
  std::vector<std::size_t> shape;
};

Plan makePlan(const std::vector<popops::expr::Expr>& exprs, const std::vector<Tensor>& ts) {
  if (ts.empty() || exprs.empty())
    throw poputil::poplibs_error(
        "[popops::map] needs at least one expression and one tensor; got " +
        std::to_string(exprs.size()) + " and " + std::to_string(ts.size()) + ". Pass both.");
  std::vector<poplar::Type> types;
  for (const auto& t : ts) types.push_back(t.elementType());
  Plan plan;
  std::vector<std::size_t> kept;
  plan.program = compileExpr(exprs, types).withoutUnusedInputs(kept);
  plan.shape = broadcastShape(ts);
  for (auto i : kept) {
    Tensor t = ts[i];
    t.broadcastToMatch(plan.shape);
    plan.inputs.push_back(std::move(t));
  }
  return plan;
}

/// Maps a result like the first operand that has all its elements; else evenly over the tiles.
Tensor makeOutput(poplar::Graph& graph, poplar::Type type, const std::vector<Tensor>& ts,
                  const std::vector<std::size_t>& shape, const poplar::DebugContext& debug) {
  for (const auto& t : ts)
    if (t.shape() == shape && t.isParallelWriteable()) return graph.clone(type, t, debug);
  return graph.addVariable(type, shape, poplar::VariableMappingMethod::LINEAR, debug);
}

/// The two words of the key of random bits, each broadcast to all elements.
std::vector<Tensor> roundingKey(poplar::Graph& graph, const std::vector<std::size_t>& shape,
                                poplar::program::Sequence& prog,
                                const poplar::DebugContext& debug) {
  auto& impl = graph.impl();
  const Tensor key =
      impl.rounding_key ? Tensor(&impl, impl.rounding_key) : drawnKey(graph, prog, debug);
  std::vector<Tensor> words;
  for (std::size_t word = 0; word < 2; ++word) {
    Tensor all = key[word];
    all.broadcastToMatch(shape);
    words.push_back(all);
  }
  return words;
}

void emitMap(poplar::Graph& graph, const Plan& plan, const std::vector<Tensor>& outputs,
             poplar::program::Sequence& prog, const poplar::DebugContext& debug, bool generated,
             const std::function<double(std::uint64_t)>& cycles = {}) {
  StepSpec spec;
  spec.kernel = "popx.map";
  // Tiles round to half in any mode at no cost, so the cost is that of the program as written.
  auto& impl = graph.impl();
  std::int64_t first =
      1;  // a drawn key is the step's alone: equal steps with equal seeds round alike
  const ExprProgram rounding =
      impl.half == ipujax::engine::HalfBehaviour{}
          ? plan.program
          : ipujax::engine::expr::withHalfRounding(
                plan.program, impl.half, impl.rounding_key ? impl.rounding_stream : first);
  spec.attributes.set("expr", rounding.toIntegers());
  if (generated) spec.attributes.set(ipujax::engine::build::kGenerated, std::int64_t{1});
  for (const auto& t : plan.inputs) spec.operands.push_back({t, Access::kRead});
  if (rounding.numInputs() > plan.inputs.size())
    for (const auto& word : roundingKey(graph, plan.shape, prog, debug))
      spec.operands.push_back({word, Access::kRead});
  for (const auto& t : outputs) spec.operands.push_back({t, Access::kWrite});
  const auto num_inputs = static_cast<std::uint32_t>(rounding.numInputs());
  for (std::uint32_t i = 0; i < plan.inputs.size(); ++i) {
    if (!plan.inputs[i].isParallelWriteable()) continue;
    for (std::uint32_t j = 0; j < outputs.size(); ++j)
      if (sizeOf(plan.inputs[i].elementType().element()) ==
          sizeOf(outputs[j].elementType().element()))
        spec.in_place.emplace_back(i, num_inputs + j);
  }
  spec.cost = elementwise::costOf(graph, plan.program, plan.inputs, outputs, cycles);
  ipujax::engine::emit(graph, prog, std::move(spec), debug);
}
}  // namespace

std::vector<std::size_t> broadcastShape(const std::vector<Tensor>& ts) {
  std::vector<std::size_t> shape;
  for (const auto& t : ts) {
    const auto& s = t.shape();
    if (s.size() > shape.size()) shape.insert(shape.begin(), s.size() - shape.size(), 1);
    const std::size_t lead = shape.size() - s.size();
    for (std::size_t d = 0; d < s.size(); ++d) {
      auto& common = shape[lead + d];
      if (common == 1)
        common = s[d];
      else if (s[d] != 1 && s[d] != common)
        throw poputil::poplibs_error("[popops::map] needs shapes that broadcast together; got " +
                                     ts.front().shapeToString() + " and " + t.shapeToString() +
                                     ". Reshape or broadcast an operand.");
    }
  }
  return shape;
}

std::vector<Tensor> map(poplar::Graph& graph, const std::vector<popops::expr::Expr>& exprs,
                        const std::vector<Tensor>& ts, poplar::program::Sequence& prog,
                        const poplar::DebugContext& debugContext, bool generated) {
  needOwn(graph, ts, "popops::map");
  const Plan plan = makePlan(exprs, ts);
  std::vector<Tensor> outputs;
  for (auto type : plan.program.outputTypes())
    outputs.push_back(makeOutput(graph, poplar::Type(type), ts, plan.shape, debugContext));
  emitMap(graph, plan, outputs, prog, debugContext, generated);
  return outputs;
}

void mapWithOutputs(poplar::Graph& graph, const std::vector<popops::expr::Expr>& exprs,
                    const std::vector<Tensor>& ts, const std::vector<Tensor>& outputs,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                    const std::function<double(std::uint64_t)>& cycles, bool generated) {
  std::vector<Tensor> all = ts;
  all.insert(all.end(), outputs.begin(), outputs.end());  // a constant takes their shape
  needOwn(graph, all, "popops::map");
  const Plan plan = makePlan(exprs, all);
  const auto types = plan.program.outputTypes();
  if (outputs.size() != types.size())
    throw poputil::poplibs_error("[popops::map] needs one output for each expression; got " +
                                 std::to_string(outputs.size()) + " for " +
                                 std::to_string(types.size()) + ". Pass one for each.");
  std::vector<Tensor> shaped;  // an output may lack leading dimensions of 1
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    const Tensor& out = outputs[j];
    if (withoutLeadingOnes(out.shape()) != withoutLeadingOnes(plan.shape) ||
        out.elementType().element() != types[j] || !out.isParallelWriteable())
      throw poputil::poplibs_error(
          "[popops::map] needs an output of shape " + shapeText(plan.shape) + " and type " +
          poplar::Type(types[j]).toString() + " without aliases; got " + out.shapeToString() + " " +
          out.elementType().toString() + ". Make it with addVariable.");
    shaped.push_back(out.reshape(plan.shape));
  }
  emitMap(graph, plan, shaped, prog, debugContext, generated, cycles);
}

}  // namespace popops::internal
