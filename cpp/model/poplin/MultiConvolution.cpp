#include "poplin/MultiConvolution.hpp"

#include <map>

#include "poputil/exceptions.hpp"
#include "poputil/internal/ParseOptions.hpp"

namespace poplin::multiconv {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;

const CreateTensorArgs& at(const std::vector<CreateTensorArgs>& args, unsigned index) {
  if (index < args.size()) return args[index];
  throw poputil::poplibs_error("[poplin::multiconv] needs an index below " +
                               std::to_string(args.size()) + ", the number of convolutions; got " +
                               std::to_string(index) + ".");
}

/// Convolutions that run together share one program, so an option that adds to it must be the same.
void checkSameOption(const std::vector<ConvolutionArgs>& args, const std::string& option) {
  const auto valueOf = [&](const OptionFlags& options) {
    for (const auto& [name, value] : options)
      if (name == option) return value;
    return std::string("false");
  };
  for (const auto& a : args)
    if (valueOf(a.options) != valueOf(args[0].options))
      throw poputil::poplibs_error("[poplin::multiconv] needs one value of " + option +
                                   " for all convolutions; got several. Use the same.");
}

/// Checks the options of how convolutions share tiles, which have no effect. Throws for others and
/// wrong values.
void checkOptions(const OptionFlags& options) {
  bool is_serial = false;
  unsigned reserved_tiles = 0;
  double back_off = 0;
  const poplibs::OptionSpec spec{
      {"planType",
       poplibs::OptionHandler::createWithEnum(
           is_serial, std::map<std::string, bool>{{"serial", true}, {"parallel", false}})},
      {"perConvReservedTiles", poplibs::OptionHandler::createWithInteger(reserved_tiles)},
      {"cycleBackOff", poplibs::OptionHandler::createWithDouble(back_off, 0, true, 1)}};
  poputil::internal::parseOptions(spec, options, "[poplin::multiconv]",
                                  "Use planType, perConvReservedTiles or cycleBackOff.");
}

DebugContext numbered(const DebugContext& debugContext, std::size_t i) {
  return {debugContext, "multiconv/" + std::to_string(i)};
}

template <class Args>
void updateAll(Graph& graph, const std::vector<Args>& args, Sequence& prog,
               const DebugContext& debugContext, PlanningCache* cache) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const auto& a = args[i];
    poplin::convolutionWeightUpdate(graph, a.zDeltas, a.weights, a.activations, a.params, a.scale,
                                    prog, numbered(debugContext, i), a.options, cache);
  }
}

}  // namespace

Tensor createWeights(Graph& graph, const std::vector<CreateTensorArgs>& args, unsigned weightsIndex,
                     const OptionFlags& options, PlanningCache* cache) {
  checkOptions(options);
  const auto& a = at(args, weightsIndex);
  return poplin::createWeights(graph, a.params, a.name, a.options, cache);
}

Tensor createInput(Graph& graph, const std::vector<CreateTensorArgs>& args, unsigned inputIndex,
                   const OptionFlags& options, PlanningCache* cache) {
  checkOptions(options);
  const auto& a = at(args, inputIndex);
  return poplin::createInput(graph, a.params, a.name, a.options, cache);
}

std::vector<Tensor> convolution(Graph& graph, const std::vector<ConvolutionArgs>& args,
                                bool transposeAndFlipWeights, Sequence& prog,
                                const DebugContext& debugContext, const OptionFlags& options,
                                PlanningCache* cache) {
  checkOptions(options);
  checkSameOption(args, "insertTransformsCycleCountProgs");
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const auto& a = args[i];
    results.push_back(poplin::convolution(graph, a.inputs, a.weights, a.params,
                                          transposeAndFlipWeights, prog, numbered(debugContext, i),
                                          a.options, cache));
  }
  return results;
}

void weightsTransposeChansFlipXY(Graph& graph, std::vector<ConvolutionArgs>& args,
                                 const std::vector<Tensor>& weightsIn, Sequence& prog,
                                 const OptionFlags& options, const DebugContext& debugContext,
                                 PlanningCache*) {
  checkOptions(options);
  if (weightsIn.size() != args.size()) {
    throw poputil::poplibs_error("[poplin::multiconv] needs weights for each of " +
                                 std::to_string(args.size()) + " convolutions; got " +
                                 std::to_string(weightsIn.size()) + ".");
  }
  for (std::size_t i = 0; i < args.size(); ++i)
    poplin::weightsTransposeChansFlipXY(graph, weightsIn[i], args[i].weights, prog,
                                        numbered(debugContext, i));
}

std::vector<Tensor> calculateWeightDeltas(Graph& graph,
                                          const std::vector<CalculateWeightDeltasArgs>& args,
                                          Sequence& prog, const DebugContext& debugContext,
                                          const OptionFlags& options, PlanningCache* cache) {
  checkOptions(options);
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const auto& a = args[i];
    results.push_back(poplin::calculateWeightDeltas(graph, a.zDeltas, a.activations, a.params, prog,
                                                    numbered(debugContext, i), a.options, cache));
  }
  return results;
}

void convolutionWeightUpdate(Graph& graph, const std::vector<ConvWeightUpdateArgs>& args,
                             Sequence& prog, const DebugContext& debugContext,
                             const OptionFlags& options, PlanningCache* cache) {
  checkOptions(options);
  updateAll(graph, args, prog, debugContext, cache);
}

void convolutionWeightUpdate(Graph& graph, const std::vector<ConvWeightUpdateArgsScalar>& args,
                             Sequence& prog, const DebugContext& debugContext,
                             const OptionFlags& options, PlanningCache* cache) {
  checkOptions(options);
  updateAll(graph, args, prog, debugContext, cache);
}

}  // namespace poplin::multiconv
