#include "poplin/Convolution.hpp"

#include <algorithm>
#include <numeric>
#include <ostream>
#include <sstream>

#include "engine/graph/Emit.hpp"
#include "engine/graph/View.hpp"
#include "engine/kernels/conv/ConvGeometry.hpp"
#include "poplin/internal/Placing.hpp"
#include "poplin/internal/PlanOptions.hpp"
#include "poplin/internal/PlanningCacheImpl.hpp"
#include "poputil/exceptions.hpp"

namespace poplin {
namespace {

namespace convolution = ipujax::engine::convolution;
using ipujax::engine::Access;
using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;

std::vector<convolution::AxisTransform> transformsOf(const ConvParams& params) {
  std::vector<convolution::AxisTransform> axes(params.getNumFieldDims());
  for (std::size_t d = 0; d < axes.size(); ++d) {
    const auto side = [d](const ConvParams::InputTransform& t) {
      return convolution::AxisTransform::Side{t.truncationLower[d], t.truncationUpper[d],
                                              t.dilation[d],        t.paddingLower[d],
                                              t.paddingUpper[d],    t.flip[d]};
    };
    const auto& o = params.outputTransform;
    axes[d] = {side(params.inputTransform),
               side(params.kernelTransform),
               {o.truncationLower[d], o.truncationUpper[d], o.stride[d], o.paddingLower[d],
                o.paddingUpper[d]}};
  }
  return axes;
}

plan::Problem problemOf(const ConvParams& params, const PlanOptions& options) {
  plan::Problem p;
  p.groups = params.numConvGroups;
  p.in_channels = params.inputChannelsPerConvGroup;
  p.out_channels = params.outputChannelsPerConvGroup;
  p.rows = p.batch = params.batchSize;
  p.input_elements = params.batchSize * params.inputChannelsPerConvGroup;
  const std::size_t dims = params.getNumFieldDims();
  for (std::size_t d = 0; d < dims; ++d) {
    p.field.push_back(params.getOutputSize(d));
    p.rows *= p.field.back();
    p.input_elements *= params.getTruncatedInputSize(d);
    // Inserted zeros are not multiplied: the input is dilated after the convolution.
    const std::size_t dilation = params.inputTransform.dilation[d];
    const std::size_t kernel = (params.getTruncatedKernelSize(d) + dilation - 1) / dilation;
    (d + 1 == dims ? p.kernel_width : p.kernel_height) *= kernel;
    p.stride = std::max<std::uint64_t>(p.stride, params.outputTransform.stride[d]);
  }
  p.row_length = dims == 0 ? p.rows : p.field.back();
  p.in_type = multipliedType(params.inputType, params.inputType, params.outputType);
  p.out_type = params.outputType.element();
  options.apply(p);
  return p;
}

plan::Plan planOf(const Graph& graph, const ConvParams& params, const OptionFlags& flags,
                  const char* where, PlanningCache* cache) {
  params.validate();
  const PlanOptions options = PlanOptions::read(flags, where);
  return planFor(problemOf(params, options), graph.getTarget(), cache);
}

Shape inputShape(const ConvParams& params) {
  Shape shape{params.batchSize, params.getNumInputChans()};
  shape.insert(shape.end(), params.inputFieldShape.begin(), params.inputFieldShape.end());
  return shape;
}

Shape weightShape(const ConvParams& params) {
  Shape shape{params.numConvGroups, params.outputChannelsPerConvGroup,
              params.inputChannelsPerConvGroup};
  shape.insert(shape.end(), params.kernelShape.begin(), params.kernelShape.end());
  return shape;
}

void checkShape(const char* name, const Tensor& t, const Shape& shape, const ConvParams& params) {
  if (t.shape() == shape) return;
  std::ostringstream os;
  os << "[poplin::convolution] needs " << name << " of shape [";
  for (std::size_t i = 0; i < shape.size(); ++i) os << (i ? ", " : "") << shape[i];
  os << "]; got " << t.shapeToString() << " (" << params << ").";
  throw poputil::poplibs_error(os.str());
}

/// Which dimension of [N, G, C, field...] is innermost in memory.
enum class Inner { kBatch, kChannels, kField };

Inner innermost(const Tensor& in) {
  const ipujax::engine::View& view = *in.view();
  if (!view.isStrided()) return Inner::kField;
  std::int64_t least = 0;
  std::size_t dim = in.rank() - 1;
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    const std::int64_t stride = std::abs(view.strides[d]);
    if (view.shape[d] == 1 || stride == 0) continue;
    if (least == 0 || stride < least) {
      least = stride;
      dim = d;
    }
  }
  return dim == 0 ? Inner::kBatch : dim <= 2 ? Inner::kChannels : Inner::kField;
}

/// A variable for [N, G, Co, field...] whose memory follows the input's order.
Tensor makeOutput(Graph& graph, const ConvParams& params, Inner inner,
                  const DebugContext& debugContext) {
  const Shape field = params.getOutputFieldShape();
  Shape logical{params.batchSize, params.numConvGroups, params.outputChannelsPerConvGroup};
  logical.insert(logical.end(), field.begin(), field.end());
  std::vector<unsigned> order(logical.size());  // memory order of the logical dimensions
  std::iota(order.begin(), order.end(), 0u);
  if (inner == Inner::kChannels) std::rotate(order.begin() + 1, order.begin() + 3, order.end());
  if (inner == Inner::kBatch) std::rotate(order.begin(), order.begin() + 3, order.end());
  Shape memory;
  std::vector<unsigned> back(order.size());
  for (unsigned i = 0; i < order.size(); ++i) {
    memory.push_back(logical[order[i]]);
    back[order[i]] = i;
  }
  return graph.addVariable(params.outputType, memory, debugContext).dimShuffle(back);
}

/// in [N, G, Ci, field...], weights [G, Co, Ci, kernel...] -> [N, G, Co, field...].
Tensor convolve(Graph& graph, const Tensor& input, const Tensor& kernel, const ConvParams& params,
                const PlanOptions& options, PlanningCache* cache, Sequence& prog,
                const DebugContext& debugContext) {
  const Tensor in = withoutQuarters(graph, input, prog, debugContext);
  const Tensor weights = withoutQuarters(graph, kernel, prog, debugContext);
  checkTypes("convolution", in.elementType(), "*", weights.elementType(), params.outputType);
  const plan::Plan plan = planForOperands(graph, problemOf(params, options), in, weights, cache);
  Tensor out = makeOutput(graph, params, innermost(in), debugContext);
  placeAsPlanned(graph, out, plan.out_elements_per_tile);
  ipujax::engine::StepSpec spec;
  spec.kernel = "poplin.convolution";
  spec.operands = {
      {in, Access::kRead, false}, {weights, Access::kRead, false}, {out, Access::kWrite, false}};
  spec.attributes.set("axes", convolution::encode(transformsOf(params)));
  spec.attributes.set("half_partials", std::int64_t{plan.chain > 0});
  spec.attributes.set("plan", plan.splits());
  spec.cost = plan.cost;
  spec.cost.flops = static_cast<double>(getFwdFlops(params));
  const auto multiplied =
      multipliedType(params.inputType, weights.elementType(), params.outputType);
  addWidening(spec.cost, graph, in, multiplied);
  addWidening(spec.cost, graph, weights, multiplied);
  ipujax::engine::emit(graph, prog, std::move(spec), debugContext);
  return out;
}

}  // namespace

Tensor createWeights(Graph& graph, const ConvParams& params, const DebugContext& debugContext,
                     const OptionFlags& options, PlanningCache* cache) {
  const plan::Plan plan = planOf(graph, params, options, "createWeights", cache);
  Tensor t = graph.addVariable(params.inputType, weightShape(params), debugContext);
  placeInSlices(graph, t, plan.weight_elements_per_tile, plan.out_serial);
  return t;
}

Tensor createInput(Graph& graph, const ConvParams& params, const DebugContext& debugContext,
                   const OptionFlags& options, PlanningCache* cache) {
  const plan::Plan plan = planOf(graph, params, options, "createInput", cache);
  Tensor t = graph.addVariable(params.inputType, inputShape(params), debugContext);
  placeAsPlanned(graph, t, plan.in_elements_per_tile);
  return t;
}

Tensor convolution(Graph& graph, const Tensor& in, const Tensor& weights, const ConvParams& params,
                   bool transposeAndFlipWeights, Sequence& prog, const DebugContext& debugContext,
                   const OptionFlags& options, PlanningCache* cache) {
  params.validate();
  const PlanOptions read = PlanOptions::read(options, "convolution");
  checkShape("input", in, inputShape(params), params);
  Tensor kernel = weights;
  if (transposeAndFlipWeights) {
    kernel = kernel.dimShufflePartial({1, 2}, {2, 1});
    for (unsigned d = 3; d < kernel.rank(); ++d) kernel = kernel.reverse(d);
  }
  checkShape("weights", kernel, weightShape(params), params);
  const Tensor grouped =
      in.reshapePartial(1, 2, {params.numConvGroups, params.inputChannelsPerConvGroup});
  return convolve(graph, grouped, kernel, params, read, cache, prog, debugContext).flatten(1, 3);
}

Tensor calculateWeightDeltas(Graph& graph, const Tensor& zDeltas, const Tensor& activations,
                             const ConvParams& params, Sequence& prog,
                             const DebugContext& debugContext, const OptionFlags& options,
                             PlanningCache* cache) {
  params.validate();
  const ConvParams update = getWeightUpdateParams(params);
  update.validate();
  const PlanOptions read = PlanOptions::read(options, "calculateWeightDeltas");
  checkShape("activations", activations, inputShape(params), params);
  Shape deltas{params.batchSize, params.getNumOutputChans()};
  const Shape field = params.getOutputFieldShape();
  deltas.insert(deltas.end(), field.begin(), field.end());
  checkShape("zDeltas", zDeltas, deltas, params);
  const std::size_t groups = params.numConvGroups;
  const Tensor in = activations.reshapePartial(1, 2, {groups, params.inputChannelsPerConvGroup})
                        .dimShufflePartial({0, 2}, {2, 0});
  const Tensor kernel = zDeltas.reshapePartial(1, 2, {groups, params.outputChannelsPerConvGroup})
                            .dimShufflePartial({0, 1, 2}, {2, 0, 1});
  return convolve(graph, in, kernel, update, read, cache, prog, debugContext)
      .dimShufflePartial({0, 1, 2}, {2, 0, 1});
}

void convolutionWithOutput(Graph& graph, const Tensor& in, const Tensor& weights, const Tensor& out,
                           const ConvParams& params, bool transposeAndFlipWeights, Sequence& prog,
                           const DebugContext& debugContext, const OptionFlags& options,
                           PlanningCache* cache) {
  const Tensor result = poplin::convolution(graph, in, weights, params, transposeAndFlipWeights,
                                            prog, debugContext, options, cache);
  prog.add(poplar::program::Copy(result, out, false, debugContext));
}

Tensor createConvOutput(Graph& graph, const ConvParams& params, const DebugContext& debugContext,
                        const OptionFlags& options, PlanningCache* cache) {
  const plan::Plan plan = planOf(graph, params, options, "createConvOutput", cache);
  Shape shape{params.batchSize, params.getNumOutputChans()};
  const Shape field = params.getOutputFieldShape();
  shape.insert(shape.end(), field.begin(), field.end());
  Tensor t = graph.addVariable(params.outputType, shape, debugContext);
  placeAsPlanned(graph, t, plan.out_elements_per_tile);
  return t;
}

Tensor fullyConnectedWeightTranspose(Graph& graph, Tensor weights, const ConvParams& params,
                                     Sequence& prog, const DebugContext& debugContext,
                                     const OptionFlags& options, PlanningCache* cache) {
  const Tensor transposed =
      createWeights(graph, getGradientParams(params), debugContext, options, cache);
  weightsTransposeChansFlipXY(graph, weights, transposed, prog, debugContext);
  return transposed;
}

void preplanConvolutions(const std::set<ConvPlanParams>& convs, PlanningCache& cache) {
  for (const auto& [target, params, options] : convs) {
    params.validate();
    const auto read = PlanOptions::read(options ? *options : OptionFlags(), "preplanConvolutions");
    planFor(problemOf(params, read), *target, &cache);
  }
}

void preplanConvolutions(Graph&, const std::set<ConvPlanParams>& convs, PlanningCache& cache) {
  preplanConvolutions(convs, cache);
}

void convolutionValidateOptions(const OptionFlags& options) {
  PlanOptions::read(options, "convolutionValidateOptions");
}

PlanCosts reportPlanEstimatedCosts(const Graph& graph, const ConvParams& params,
                                   const OptionFlags& options, PlanningCache* cache) {
  const plan::Plan plan = planOf(graph, params, options, "reportPlanEstimatedCosts", cache);
  return {static_cast<std::size_t>(plan.cost.cycles()),
          static_cast<std::size_t>(plan.cost.temporary_bytes)};
}

internal::DetailedPlanCosts internal::reportDetailedPlanEstimatedCosts(const Graph& graph,
                                                                       const ConvParams& params,
                                                                       const OptionFlags& options,
                                                                       PlanningCache* cache) {
  const plan::Plan plan = planOf(graph, params, options, "reportDetailedPlanEstimatedCosts", cache);
  const auto whole = [](double x) { return static_cast<std::size_t>(x); };
  const auto& cost = plan.cost;
  DetailedPlanCosts costs;
  costs.apply([](PlanCosts& stage) { stage = {PlanCosts::unknown, PlanCosts::unknown}; });
  costs.parallelSplit = plan.tiles;
  costs.serialSplit = plan.serial();
  costs.total = {whole(cost.cycles()), cost.temporary_bytes};
  costs.compute.cycles = whole(cost.compute_cycles);
  costs.exchange = {costs.total.cycles - costs.compute.cycles, cost.received_bytes};
  costs.rearrangement.memory = cost.rearranged_bytes;
  return costs;
}

void reportWeightUpdatePlanInfo(std::ostream& out, const Graph& graph, const ConvParams& fwdParams,
                                const OptionFlags& fwdOptions, PlanningCache* cache) {
  reportPlanInfo(out, graph, getWeightUpdateParams(fwdParams), fwdOptions, cache);
}

void reportPlanInfo(std::ostream& out, const Graph& graph, const ConvParams& params,
                    const OptionFlags& options, PlanningCache* cache) {
  out << planOf(graph, params, options, "reportPlanInfo", cache).report() << "\n";
}

}  // namespace poplin
