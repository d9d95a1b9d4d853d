#include "popx/Reduce.hpp"

#include <algorithm>

#include "poplar/exceptions.hpp"
#include "poputil/TileMapping.hpp"
#include "popx/ReduceBody.hpp"

namespace popx {
using native::ExprProgram;
using poplar::Tensor;

namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& needs, const std::string& got,
                         const std::string& fix) {
  throw poplar::poplar_error("[" + where + "] needs " + needs + "; got " + got + ". " + fix);
}

std::vector<std::size_t> keptShape(const Tensor& in, const std::vector<std::size_t>& dims) {
  std::vector<bool> reduced(in.rank());
  for (std::size_t d : dims) {
    if (d >= in.rank() || reduced[d]) {
      refuse("popx::reduce", "dimensions below " + std::to_string(in.rank()) + ", each once",
             std::to_string(d), "Check the dimensions.");
    }
    reduced[d] = true;
  }
  std::vector<std::size_t> shape;
  for (unsigned d = 0; d < in.rank(); ++d) {
    if (!reduced[d]) shape.push_back(in.dim(d));
  }
  return shape;
}

/// Worker cycles of a body that popc would inline: one instruction per operation, load and store.
native::VertexRate bodyRate(const poplar::Target& target, const ExprProgram& body) {
  native::VertexRate rate(target);
  rate.vector = 1;
  rate.cycles_per_vector =
      static_cast<double>(body.instructions().size() + body.numInputs() / 2 + 1);
  return rate;
}

}  // namespace

ExprProgram compileBody(const char* where, const std::vector<popops::expr::Expr>& body,
                        const std::vector<Tensor>& values, const std::vector<Tensor>& inits) {
  const std::size_t k = values.size();
  if (k == 0 || k > native::TurnBuffers::kMaxValues || body.size() != k || inits.size() != k) {
    refuse(where, "1 to 16 tensors with one initial value and one expression each",
           std::to_string(k) + ", " + std::to_string(inits.size()) + " and " +
               std::to_string(body.size()),
           "Pass as many of each.");
  }
  std::vector<poplar::Type> types;
  for (int side = 0; side < 2; ++side) {
    for (std::size_t i = 0; i < k; ++i) {
      const poplar::Type type = values[i].elementType();
      if (values[i].shape() != values[0].shape() || inits[i].numElements() != 1 ||
          inits[i].elementType() != type) {
        refuse(where, "tensors of one shape and scalar initial values of their types",
               values[i].shapeToString() + " " + type.toString() + ", " + inits[i].shapeToString() +
                   " " + inits[i].elementType().toString(),
               "Reshape or cast.");
      }
      types.push_back(type);
    }
  }
  ExprProgram program = native::compileExpr(body, types);
  const auto results = program.outputTypes();
  for (std::size_t i = 0; i < k; ++i) {
    if (results[i] != types[i].element()) {
      refuse(where, "expressions of their accumulators' types",
             poplar::Type(results[i]).toString() + " for " + types[i].toString(),
             "Cast inside the expression.");
    }
  }
  return program;
}

/// Whether lanes run over the results: not if these are few, or the reduced elements adjacent. It
/// is part of the step, since it decides the order in which floats are combined, which must be the
/// same for a part of the results as for all of them.
bool isWide(const Tensor& in, const Tensor& out, const std::vector<std::size_t>& dims) {
  const std::size_t reduced = in.numElements() / std::max<std::size_t>(out.numElements(), 1);
  const bool last_is_reduced = std::ranges::find(dims, in.rank() - 1) != dims.end();
  return reduced < 64 || (out.numElements() >= 32 && !(last_is_reduced && reduced >= 256));
}

std::vector<Tensor> reduce(poplar::Graph& graph, const std::vector<Tensor>& ins,
                           const std::vector<Tensor>& inits,
                           const std::vector<popops::expr::Expr>& body,
                           const std::vector<std::size_t>& dims, poplar::program::Sequence& prog,
                           const poplar::DebugContext& debugContext) {
  const ExprProgram program = compileBody("popx::reduce", body, ins, inits);
  const auto shape = keptShape(ins[0], dims);
  std::vector<Tensor> outs;
  for (const Tensor& in : ins) {
    outs.push_back(graph.addVariable(in.elementType(), shape, {debugContext, "reduced"}));
    poputil::mapTensorLinearly(graph, outs.back());
  }
  if (const auto named = native::reducerOf(program)) {
    native::ReduceStep step{*named};
    step.init = &inits[0];
    native::emitReduce(graph, ins[0], outs[0], dims, step, prog, debugContext);
    return outs;
  }
  native::StepSpec spec;
  spec.kernel = "popx.reduce";
  std::size_t partial_bytes = 0;
  for (const Tensor& in : ins) {
    spec.operands.push_back({in, native::Access::kRead, false});
    partial_bytes += graph.getTarget().getTypeSize(in.elementType());
  }
  for (const Tensor& out : outs) spec.operands.push_back({out, native::Access::kWrite, true});
  for (const Tensor& init : inits) spec.operands.push_back({init, native::Access::kRead, true});
  spec.attributes.set("dims", native::Attributes::Integers(dims.begin(), dims.end()))
      .set("expr", program.toIntegers())
      .set("wide", std::int64_t{isWide(ins[0], outs[0], dims)});
  spec.cost = native::reduceCost(graph, ins[0], dims, outs[0], partial_bytes,
                                 bodyRate(graph.getTarget(), program));
  native::emit(graph, prog, std::move(spec), {debugContext, "reduce"});
  return outs;
}

}  // namespace popx
