#include "popops/GatherStatistics.hpp"

#include <string>

#include "popops/ElementWise.hpp"
#include "popops/Reduce.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

void check(const poplar::Tensor& input, const poplar::Tensor& levels) {
  const auto type = input.elementType();
  if ((type == poplar::FLOAT || type == poplar::HALF) && levels.elementType() == type &&
      levels.rank() == 1 && levels.numElements() > 0)
    return;
  throw poputil::poplibs_error(
      "[popops::histogram] needs an input of FLOAT or HALF and levels [n] of its type; got " +
      input.shapeToString() + " " + type.toString() + " and " + levels.shapeToString() + " " +
      levels.elementType().toString() + ". Cast or flatten them.");
}

/// The number of elements below each level, then the total: [levels + 1].
poplar::Tensor below(poplar::Graph& graph, const poplar::Tensor& input,
                     const poplar::Tensor& levels, bool absolute, const poplar::Type& type,
                     poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  const auto all = input.flatten();
  const expr::Any value = absolute ? expr::Any(expr::Abs(expr::_1)) : expr::Any(expr::_1);
  std::vector<poplar::Tensor> counts;
  for (std::size_t i = 0; i < levels.numElements(); ++i) {
    const auto is_below = map(graph, expr::Cast(expr::Lt(value, expr::_2), type),
                              {all, levels.slice(i, i + 1)}, prog, debugContext);
    counts.push_back(reduce(graph, is_below, {0}, Operation::ADD, prog, debugContext).expand({0}));
  }
  const auto total = graph.addConstant(type, {1}, all.numElements(), debugContext);
  graph.setTileMapping(total, 0);
  counts.push_back(total);
  return poplar::concat(counts);
}

}  // namespace

poplar::Tensor histogram(poplar::Graph& graph, const poplar::Tensor& input,
                         const poplar::Tensor& levels, bool absoluteOfInput,
                         poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                         const poplar::OptionFlags& options) {
  bool is_float = false;
  for (const auto& [name, value] : options) {
    if (name != "useFloatArithmetic" || (value != "true" && value != "false")) {
      throw poplar::invalid_option(
          "[popops::histogram] needs the option useFloatArithmetic, true or false; got " + name +
          "=" + value + ".");
    }
    is_float = value == "true";
  }
  check(input, levels);
  auto counts =
      graph.addVariable(is_float ? poplar::FLOAT : poplar::UNSIGNED_INT, {levels.numElements() + 1},
                        poplar::VariableMappingMethod::LINEAR, debugContext);
  histogram(graph, input, counts, false, levels, absoluteOfInput, prog, debugContext);
  return counts;
}

void histogram(poplar::Graph& graph, const poplar::Tensor& input, poplar::Tensor& output,
               bool updateOutput, const poplar::Tensor& levels, bool absoluteOfInput,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  check(input, levels);
  const auto type = output.elementType();
  const auto n = levels.numElements();
  if (output.rank() != 1 || output.dim(0) != n + 1 ||
      (type != poplar::FLOAT && type != poplar::UNSIGNED_INT)) {
    throw poputil::poplibs_error("[popops::histogram] needs an output of FLOAT or UNSIGNED_INT [" +
                                 std::to_string(n + 1) + "]; got " + type.toString() + " " +
                                 output.shapeToString() + ".");
  }
  const poplar::DebugContext context{debugContext, "histogram"};
  const auto counts = below(graph, input, levels, absoluteOfInput, type, prog, context);
  const auto between = poplar::concat(
      counts.slice(0, 1), sub(graph, counts.slice(1, n + 1), counts.slice(0, n), prog, context));
  if (updateOutput)
    addInPlace(graph, output, between, prog, context);
  else
    prog.add(poplar::program::Copy(between, output, false, context));
}

}  // namespace popops
