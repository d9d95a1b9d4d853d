#include "popops/Reduce.hpp"

#include <algorithm>

#include "engine/kernels/reduce/ReduceLoops.hpp"
#include "popops/ElementWise.hpp"
#include "popops/internal/ReduceMapping.hpp"
#include "popops/internal/ReduceStep.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

namespace {

namespace engine = ipujax::engine;
using engine::reduction::Reducer;

[[noreturn]] void refuse(const std::string& needs, const std::string& got, const std::string& fix) {
  throw poputil::poplibs_error("[popops::reduce] needs " + needs + "; got " + got + ". " + fix);
}

/// `dims` without duplicates, as PopLibs takes them as a set.
std::vector<std::size_t> uniqueDims(const poplar::Tensor& in,
                                    const std::vector<std::size_t>& dims) {
  std::vector<std::size_t> unique;
  for (std::size_t d : dims) {
    if (d >= in.rank()) {
      refuse("dimensions below " + std::to_string(in.rank()), std::to_string(d),
             "Reduce existing dimensions.");
    }
    if (std::ranges::find(unique, d) == unique.end()) unique.push_back(d);
  }
  return unique;
}

/// `out` reshaped to the kept dimensions; it may have extra or missing dimensions of size 1.
poplar::Tensor asKept(const poplar::Tensor& out, const std::vector<std::size_t>& kept) {
  const auto without_ones = [](std::vector<std::size_t> shape) {
    std::erase(shape, std::size_t{1});
    return shape;
  };
  if (without_ones(out.shape()) == without_ones(kept)) return out.reshape(kept);
  refuse("an output with the kept dimensions", out.shapeToString(), "Reshape it.");
}

std::vector<std::size_t> keptShape(const poplar::Tensor& in, const std::vector<std::size_t>& dims) {
  std::vector<std::size_t> shape;
  for (std::size_t d = 0; d < in.rank(); ++d) {
    if (std::ranges::find(dims, d) == dims.end()) shape.push_back(in.dim(static_cast<unsigned>(d)));
  }
  return shape;
}

bool isFloating(const poplar::Type& type) { return type == poplar::FLOAT || type == poplar::HALF; }

void checkTypes(const poplar::Tensor& in, const poplar::Type& out, const ReduceParams& params) {
  const poplar::Type type = in.elementType();
  const bool floating = isFloating(type);
  const bool logical = params.op == Operation::LOGICAL_AND || params.op == Operation::LOGICAL_OR;
  if (logical && type != poplar::BOOL) {
    refuse("BOOL for logical operations", type.toString(), "Compare with zero first.");
  }
  if (!engine::reduction::loopsFor(static_cast<Reducer>(params.op), type.element())) {
    refuse("an operation that exists for its type", type.toString(), "Cast the input.");
  }
  if (out != type && !(floating && isFloating(out))) {
    refuse("an output of the input's type, or both floating", out.toString(), "Cast the result.");
  }
  const bool adds = params.op == Operation::ADD || params.op == Operation::SQUARE_ADD ||
                    params.op == Operation::LOG_ADD;
  if ((params.update || params.useScale) && !adds) {
    refuse("ADD, SQUARE_ADD or LOG_ADD for update and scale", "another operation",
           "Combine the result in a step of its own.");
  }
  if (params.useScale && !floating)
    refuse("floating elements for a scale", type.toString(),
           "Scale the result in a step of its own.");
  if (params.useScale &&
      (params.scale.elementType() != poplar::FLOAT || params.scale.numElements() != 1)) {
    refuse("a FLOAT scalar as scale", params.scale.elementType().toString(), "Cast it.");
  }
}

/// Whether every output is an unchanged input.
bool isCopy(const poplar::Tensor& in, const poplar::Tensor& out, const ReduceParams& params) {
  return in.numElements() == out.numElements() && in.elementType() == out.elementType() &&
         params.op != Operation::SQUARE_ADD && !params.update && !params.useScale;
}

/// Maps a result as PopLibs does: where its elements are, if that needs no exchange, else evenly.
/// Returns whether it needs none.
bool mapResult(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
               const std::vector<std::size_t>& dims) {
  if (const auto local = internal::tileLocalMapping(graph, in, dims, out.elementType())) {
    graph.setTileMapping(out, *local);
    return true;
  }
  poputil::mapTensorLinearly(graph, out);
  return false;
}

bool isMapped(const poplar::Graph& graph, const poplar::Tensor& t) {
  bool complete = true;
  graph.getTileMapping(t, &complete);
  return complete;
}

void reduceInto(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
                const std::vector<std::size_t>& dims, const ReduceParams& params, bool is_local,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  if (isCopy(in, out, params)) {
    prog.add(poplar::program::Copy(in.reshape(out.shape()), out, false, {debugContext, "reduce"}));
    return;
  }
  internal::ReduceStep step{static_cast<Reducer>(params.op)};
  step.update = params.update;
  step.is_local = is_local;
  if (params.useScale) step.scale = &params.scale;
  // poplibs CycleEstimationFunctions.cpp: log-add 13 cycles per 4 halves, 23 per 2 floats.
  if (params.op == Operation::LOG_ADD)
    step.cycles_per_vector = in.elementType() == poplar::HALF ? 13 : 23;
  internal::emitReduce(graph, in, out, dims, step, prog, debugContext);
}

}  // namespace

void reduceWithOutput(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& given,
                      const std::vector<std::size_t>& named_dims, ReduceParams params,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                      const poplar::OptionFlags&) {
  checkTypes(in, given.elementType(), params);
  const auto dims = uniqueDims(in, named_dims);
  const poplar::Tensor out = asKept(given, keptShape(in, dims));
  const bool is_local = !isMapped(graph, out) && mapResult(graph, in, out, dims);
  if (params.update && !isFloating(in.elementType())) {  // the kernel updates no integers
    params.update = false;
    const auto result = reduce(graph, in, dims, params, prog, {debugContext, "update"});
    addInPlace(graph, out, result, prog, {debugContext, "update"});
    return;
  }
  reduceInto(graph, in, out, dims, params, is_local, prog, debugContext);
}

poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Type& outType,
                      const std::vector<std::size_t>& dims, ReduceParams params,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                      const poplar::OptionFlags&) {
  checkTypes(in, outType, params);
  if (params.update) {
    refuse("no update where the output is new", "update", "Use reduceWithOutput.");
  }
  const auto unique = uniqueDims(in, dims);
  poplar::Tensor out = graph.addVariable(outType, keptShape(in, unique), {debugContext, "reduced"});
  const bool is_local = mapResult(graph, in, out, unique);
  reduceInto(graph, in, out, unique, params, is_local, prog, debugContext);
  return out;
}

poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in,
                      const std::vector<std::size_t>& dims, ReduceParams params,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                      const poplar::OptionFlags& options) {
  return reduce(graph, in, in.elementType(), dims, std::move(params), prog, debugContext, options);
}

}  // namespace popops
