#include "popnn/Pooling.hpp"

#include <algorithm>
#include <ostream>

#include "engine/graph/Emit.hpp"
#include "popnn/internal/ReduceWindow.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"
#include "poputil/internal/ParseOptions.hpp"

namespace popnn {

const char* asString(const PoolingType& type) {
  static const char* const names[] = {"max", "avg", "sum"};
  return names[static_cast<int>(type)];
}

namespace pooling {

namespace {

namespace engine = ipujax::engine;
using engine::reduction::Reducer;

[[noreturn]] void refuse(const char* where, const std::string& needs, const std::string& got) {
  throw poputil::poplibs_error(std::string("[popnn::pooling::") + where + "] needs " + needs +
                               "; got " + got + ". Check the parameters.");
}

/// Refuses options that PopLibs does not have. Options have no effect: the model has one plan for
/// pooling, which maps results linearly and sums in float.
void checkOptions(const poplar::OptionFlags& options) {
  using poplibs::OptionHandler;
  bool unused = false;
  const poplibs::OptionSpec spec{
      {"poolUseIntrospectiveMapping", OptionHandler::createWithBool(unused)},
      {"optimizeForSpeed", OptionHandler::createWithBool(unused)},
      {"useFloatPartialsWhereBeneficial", OptionHandler::createWithBool(unused)}};
  poputil::internal::parseOptions(spec, options, "[popnn::pooling]", "Omit it.");
}

engine::Window windowOf(const PoolParams& params, const char* where) {
  const std::size_t fields = params.getNumFieldDims();
  if (params.kernelShape.size() != fields || params.stride.size() != fields ||
      params.inputTruncationOrPaddingLower.size() != fields ||
      params.inputTruncationOrPaddingUpper.size() != fields) {
    refuse(where, "kernel, stride and padding for each field dimension", std::to_string(fields));
  }
  engine::Window window = engine::Window::of(std::vector<std::int64_t>(fields + 2, 1));
  for (std::size_t d = 0; d < fields; ++d) {
    window.sizes[d + 2] = static_cast<std::int64_t>(params.kernelShape[d]);
    window.strides[d + 2] = params.stride[d];
    window.padding_low[d + 2] = params.inputTruncationOrPaddingLower[d];
    window.padding_high[d + 2] = params.inputTruncationOrPaddingUpper[d];
  }
  window.check(where, fields + 2);
  return window;
}

std::vector<std::size_t> shapeOf(const PoolParams& params, const std::vector<std::size_t>& field) {
  std::vector<std::size_t> shape{params.batchSize, params.numChannels};
  shape.insert(shape.end(), field.begin(), field.end());
  return shape;
}

void checkShape(const char* where, const poplar::Tensor& t, const std::vector<std::size_t>& shape,
                poplar::Type type) {
  if (type != poplar::FLOAT && type != poplar::HALF)
    refuse(where, "FLOAT or HALF", type.toString());
  if (t.shape() != shape || t.elementType() != type) {
    std::string wanted;
    for (std::size_t d : shape) wanted += std::to_string(d) + " ";
    refuse(where, type.toString() + " of shape " + wanted,
           t.elementType().toString() + " " + t.shapeToString());
  }
}

poplar::Tensor emitGradient(poplar::Graph& graph, const PoolParams& params,
                            const std::vector<poplar::Tensor>& forward,
                            const poplar::Tensor& pooledGradient, bool scaled,
                            poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext) {
  const engine::Window window = windowOf(params, "poolInputGradient");
  checkShape("poolInputGradient", pooledGradient, shapeOf(params, params.getOutputFieldShape()),
             params.dType);
  poplar::Tensor out = graph.addVariable(params.dType, shapeOf(params, params.inputFieldShape),
                                         {debugContext, "poolInputGradient"});
  poputil::mapTensorLinearly(graph, out);
  engine::StepSpec spec;
  spec.kernel = "popnn.pool_gradient";
  spec.operands = {{out, engine::Access::kWrite, true},
                   {pooledGradient, engine::Access::kRead, false}};
  for (const auto& t : forward) spec.operands.push_back({t, engine::Access::kRead, false});
  spec.attributes.set("type", static_cast<std::int64_t>(params.poolingType))
      .set("scaled", std::int64_t{scaled})
      .set("window", window.toIntegers());
  // popnnCycleEstimators.cpp: 7 + 5 n cycles a vector for the backward pass.
  spec.cost = internal::windowCost(graph, out, pooledGradient, window, 5);
  engine::emit(graph, prog, std::move(spec), {debugContext, "poolInputGradient"});
  return out;
}

}  // namespace

std::vector<std::size_t> PoolParams::getOutputFieldShape() const {
  const engine::Window window = windowOf(*this, "getOutputFieldShape");
  std::vector<std::size_t> shape;
  for (std::size_t d = 0; d < inputFieldShape.size(); ++d) {
    const auto n = static_cast<std::int64_t>(inputFieldShape[d]);
    shape.push_back(static_cast<std::size_t>(window.outputSize(d + 2, n)));
  }
  return shape;
}

std::vector<std::size_t> getOutputFieldShape(const PoolParams& params) {
  return params.getOutputFieldShape();
}

std::ostream& operator<<(std::ostream& o, const PoolParams& params) {
  const auto list = [&](const char* name, const auto& values) {
    o << ", " << name;
    for (const auto value : values) o << ' ' << value;
  };
  o << asString(params.poolingType) << " pooling of " << params.batchSize << " x "
    << params.numChannels;
  list("field", params.inputFieldShape);
  list("kernel", params.kernelShape);
  list("stride", params.stride);
  list("padding below", params.inputTruncationOrPaddingLower);
  list("above", params.inputTruncationOrPaddingUpper);
  return o << ", " << params.dType.toString();
}

std::uint64_t getFwdFlops(const PoolParams& params) {
  const auto outputs = params.getOutputFieldShape();
  const std::uint64_t planes = params.batchSize * params.numChannels;
  std::uint64_t elements = planes, results = planes;
  for (std::size_t d = 0; d < outputs.size(); ++d) {
    std::uint64_t under = 0;  // the kernel, at all places along this dimension
    const auto size = static_cast<std::int64_t>(params.inputFieldShape[d]);
    for (std::size_t i = 0; i < outputs[d]; ++i) {
      const std::int64_t begin =
          static_cast<std::int64_t>(i * params.stride[d]) - params.inputTruncationOrPaddingLower[d];
      const std::int64_t end = begin + static_cast<std::int64_t>(params.kernelShape[d]);
      under += static_cast<std::uint64_t>(
          std::max<std::int64_t>(0, std::min(end, size) - std::max<std::int64_t>(begin, 0)));
    }
    elements *= under;
    results *= outputs[d];
  }
  return elements + (params.poolingType == PoolingType::AVG ? results : 0);
}
std::uint64_t getBwdFlops(const PoolParams& params) { return getFwdFlops(params); }

double getFwdPerfectCycleCount(const poplar::Graph& graph, const PoolParams& params) {
  const poplar::Target& target = graph.getTarget();
  const double vector = 8.0 / static_cast<double>(target.getTypeSize(params.dType));
  return static_cast<double>(getFwdFlops(params)) / (vector * target.getNumTiles());
}
double getBwdPerfectCycleCount(const poplar::Graph& graph, const PoolParams& params) {
  return getFwdPerfectCycleCount(graph, params);
}

poplar::Tensor pool(poplar::Graph& graph, const PoolParams& params, const poplar::Tensor& in,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                    const poplar::OptionFlags& options) {
  checkOptions(options);
  const engine::Window window = windowOf(params, "pool");
  checkShape("pool", in, shapeOf(params, params.inputFieldShape), params.dType);
  poplar::Tensor out = graph.addVariable(
      params.dType, shapeOf(params, params.getOutputFieldShape()), {debugContext, "pooled"});
  poputil::mapTensorLinearly(graph, out);
  const Reducer reducer =
      params.poolingType == PoolingType::MAX ? Reducer::kMaximum : Reducer::kAdd;
  internal::reduceWindowNamed(graph, in, out, {}, reducer, params.poolingType == PoolingType::AVG,
                              window, prog, {debugContext, "pool"});
  return out;
}

poplar::Tensor poolInputGradient(poplar::Graph& graph, const PoolParams& params,
                                 const poplar::Tensor& in, const poplar::Tensor& pooled,
                                 const poplar::Tensor& pooledGradient, bool useScaledGradient,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext,
                                 const poplar::OptionFlags& options) {
  if (params.poolingType != PoolingType::MAX)
    return poolInputGradient(graph, params, 1, pooledGradient, prog, debugContext, options);
  checkOptions(options);
  checkShape("poolInputGradient", in, shapeOf(params, params.inputFieldShape), params.dType);
  checkShape("poolInputGradient", pooled, shapeOf(params, params.getOutputFieldShape()),
             params.dType);
  return emitGradient(graph, params, {in, pooled}, pooledGradient, useScaledGradient, prog,
                      debugContext);
}

poplar::Tensor poolInputGradient(poplar::Graph& graph, const PoolParams& params, unsigned,
                                 const poplar::Tensor& pooledGradient,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext,
                                 const poplar::OptionFlags& options) {
  checkOptions(options);
  if (params.poolingType == PoolingType::MAX) {
    refuse("poolInputGradient", "AVG or SUM pooling where no input is given", "max");
  }
  return emitGradient(graph, params, {}, pooledGradient, false, prog, debugContext);
}

}  // namespace pooling
}  // namespace popnn
