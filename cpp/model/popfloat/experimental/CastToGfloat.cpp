#include "popfloat/experimental/CastToGfloat.hpp"

#include "engine/graph/ProgramNode.hpp"
#include "popfloat/internal/GfloatSteps.hpp"
#include "popops/Cast.hpp"
#include "poputil/DebugInfo.hpp"

namespace popfloat {
namespace experimental {
namespace {

using internal::Format;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;
using poputil::poplibs_error;

/// The format in a constant of createCastOpParamsTensor.
Format formatOf(const Graph& graph, const Tensor& param) {
  int packed = 0;
  if (!param.valid() || param.numElements() != 1 || !graph.getConstantValue(param, &packed))
    throw poplibs_error(
        "[GfloatCast] needs a format that is known when the graph is made; got a tensor that is "
        "no constant. Use createCastOpParamsTensor.");
  Format f{packed & 0xff, packed >> 8 & 0xff, static_cast<std::int8_t>(packed >> 16 & 0xff),
           (packed >> 24 & 1) != 0, (packed >> 24 & 2) != 0};
  if (f.exponent < (f.infs ? 2 : 1) || f.lowestExponent() < -126)
    throw poplibs_error("[GfloatCast] needs a format with exponents from -126, as FLOAT has; got " +
                        std::to_string(f.exponent) + " bits of the exponent with the bias " +
                        std::to_string(f.bias) + ". Use a format that FLOAT holds.");
  return f;
}

void checkHolds(const poplar::Type& type, const Format& f) {
  if (type == poplar::FLOAT || (type == poplar::HALF && f.fitsHalf())) return;
  if (type == poplar::HALF)
    throw poplibs_error(
        "[GfloatCast] needs a type that holds the format's values exactly; got "
        "half for exponents of " +
        std::to_string(f.lowestExponent()) + " to " + std::to_string(f.highestExponent()) +
        ". Use SpecType::FP32.");
  const int bits = type == poplar::CHAR ? 8 : type == poplar::SHORT ? 16 : 0;
  if (bits == 1 + f.exponent + f.mantissa && f.mantissa > 0) return;
  throw poplibs_error("[GfloatCast] needs a format of 8 bits for char and of 16 for short; got " +
                      std::to_string(1 + f.exponent + f.mantissa) + " bits for " + type.toString() +
                      ". Store it as FP16 or FP32.");
}

Tensor toFloat(Graph& graph, const Tensor& t, Sequence& prog) {
  if (t.elementType() == poplar::FLOAT) return t;
  if (t.elementType() == poplar::HALF) return popops::cast(graph, t, poplar::FLOAT, prog);
  throw poplibs_error("[GfloatCast] needs FLOAT or HALF; got " + t.elementType().toString() +
                      ". Cast it.");
}

}  // namespace

GfloatCast::GfloatCast(const FormatConfig& formatCfg, const RoundConfig& roundCfg,
                       bool enableNanooMode, const SpecType& GFType, const SpecType& NativeType)
    : format_(formatCfg) {
  const auto chosen = [](SpecType type, poplar::Type own) {
    return type == SpecType::AUTO ? own : specTypeToPoplarType(type);
  };
  const poplar::Type calculation = formatCfg.getCalculationType();
  to_gf_ = CastConfig::createCastNativeToGF(formatCfg.getFormatType(), calculation,
                                            chosen(GFType, formatCfg.getStorageType()), roundCfg,
                                            enableNanooMode);
  to_native_ = CastConfig::createCastGFToNative(formatCfg.getFormatType(), calculation,
                                                chosen(NativeType, formatCfg.getNativeType()));
}

GfloatCast::GfloatCast(const GfloatFormatOptions& formatOptions,
                       const GfloatCastOptions& castOptions, poplar::Type calculationType,
                       const SpecType& GFType, const SpecType& NativeType)
    : GfloatCast(FormatConfig(formatOptions, calculationType),
                 RoundConfig(castOptions, calculationType), castOptions.enableNanooMode, GFType,
                 NativeType) {}

Tensor GfloatCast::createCastOpParamsTensor(Graph& graph, const poplar::ComputeSet&, poplar::Type,
                                            unsigned gfPacked) {
  const Tensor param =
      graph.addConstant(poplar::INT, {1}, static_cast<int>(gfPacked), {"gfloatParams"});
  graph.setTileMapping(param, 0);
  return param;
}

Tensor GfloatCast::createCastOpParamsTensor(Graph& graph, const poplar::ComputeSet&, poplar::Type,
                                            Tensor gfPacked) {
  formatOf(graph, gfPacked);  // throws
  return gfPacked;
}

Tensor GfloatCast::createCastOpParamsTensor(Graph& graph, Sequence&, poplar::Type calculationType,
                                            Tensor gfStruct,
                                            const poplar::DebugContext& debugContext) {
  const poputil::PoplibsOpDebugInfo record(debugContext, DI_ARGS(gfStruct));
  return createCastOpParamsTensor(graph, poplar::ComputeSet(), calculationType,
                                  std::move(gfStruct));
}

Tensor GfloatCast::createCastOpParamsTensor(Graph& graph, Sequence&, poplar::Type calculationType,
                                            unsigned gfStruct,
                                            const poplar::DebugContext& debugContext) {
  const poputil::PoplibsOpDebugInfo record(debugContext, DI_ARGS(gfStruct));
  return createCastOpParamsTensor(graph, poplar::ComputeSet(), calculationType, gfStruct);
}

void GfloatCast::createCastOpParamsTensor(Graph& graph, Sequence&,
                                          const poplar::DebugContext& debugContext) {
  const poputil::PoplibsOpDebugInfo record(debugContext);
  createCastOpParamsTensor(graph, poplar::ComputeSet());
}

void GfloatCast::createCastOpParamsTensor(Graph& graph, const poplar::ComputeSet& cs) {
  params_ =
      createCastOpParamsTensor(graph, cs, getCalculationType(), format_.getPackedFloatParameters());
}

const Tensor& GfloatCast::params(const char* where) const {
  if (params_.valid()) return params_;
  throw poplibs_error(std::string("[GfloatCast::") + where +
                      "] needs the parameters of the cast; got none. Call "
                      "createCastOpParamsTensor first.");
}

Tensor GfloatCast::castNativeToGfloat(Graph& graph, Tensor input, const Tensor& param,
                                      Sequence& prog, const CastConfig& gfCastCfg,
                                      const poplar::DebugContext& debugContext) {
  const poputil::PoplibsOpDebugInfo record(debugContext, DI_ARGS(input, param));
  const Format f = formatOf(graph, param);
  const poplar::Type type = gfCastCfg.getStorageType();
  checkHolds(type, f);
  Sequence steps({}, debugContext);
  const Tensor q = internal::quantise(graph, toFloat(graph, input, steps), f, gfCastCfg, steps);
  const Tensor out = type == poplar::FLOAT  ? q
                     : type == poplar::HALF ? popops::cast(graph, q, type, steps)
                                            : internal::pack(graph, q, f, type, steps);
  prog.add(steps);
  return out;
}

Tensor GfloatCast::castNativeToGfloat(Graph& graph, Tensor input, const Tensor& param,
                                      const poplar::ComputeSet& cs, const CastConfig& gfCastCfg) {
  Sequence steps;
  const Tensor out = castNativeToGfloat(graph, std::move(input), param, steps, gfCastCfg);
  cs.steps()->children.push_back(steps.node());
  return out;
}

Tensor GfloatCast::castNativeToGfloat(Graph& graph, Tensor input, Sequence& prog,
                                      const poplar::DebugContext& debugContext) {
  return castNativeToGfloat(graph, std::move(input), params("castNativeToGfloat"), prog, to_gf_,
                            debugContext);
}

void GfloatCast::castNativeToGfloatInPlace(Graph& graph, Tensor input, const Tensor& param,
                                           Sequence& prog, const CastConfig& gfCastCfg,
                                           const poplar::DebugContext& debugContext) {
  if (!gfCastCfg.inPlaceOp(input.elementType()))
    throw poplibs_error(
        "[GfloatCast::castNativeToGfloatInPlace] needs a tensor of the type that "
        "holds the format, " +
        gfCastCfg.getStorageType().toString() + "; got " + input.elementType().toString() +
        ". Use castNativeToGfloat.");
  const Tensor out = castNativeToGfloat(graph, input, param, prog, gfCastCfg, debugContext);
  prog.add(poplar::program::Copy(out, input, false, debugContext));
}

void GfloatCast::castNativeToGfloatInPlace(Graph& graph, Tensor input, Sequence& prog,
                                           const poplar::DebugContext& debugContext) {
  castNativeToGfloatInPlace(graph, std::move(input), params("castNativeToGfloatInPlace"), prog,
                            to_gf_, debugContext);
}

void GfloatCast::castNativeToGfloatInPlace(Graph& graph, Tensor input, const Tensor& param,
                                           const poplar::ComputeSet& cs,
                                           const CastConfig& gfCastCfg) {
  Sequence steps;
  castNativeToGfloatInPlace(graph, std::move(input), param, steps, gfCastCfg);
  cs.steps()->children.push_back(steps.node());
}

void GfloatCast::castNativeToGfloatInPlace(Graph& graph, Tensor input,
                                           const poplar::ComputeSet& cs) {
  castNativeToGfloatInPlace(graph, std::move(input), params("castNativeToGfloatInPlace"), cs,
                            to_gf_);
}

Tensor GfloatCast::castGfloatToNative(Graph& graph, Tensor input, const Tensor& param,
                                      Sequence& prog, const CastConfig& gfCastCfg,
                                      const poplar::DebugContext& debugContext) {
  const poputil::PoplibsOpDebugInfo record(debugContext, DI_ARGS(input, param));
  const Format f = formatOf(graph, param);
  const poplar::Type type = gfCastCfg.getStorageType();
  if (type != poplar::FLOAT && type != poplar::HALF)
    throw poplibs_error(
        "[GfloatCast::castGfloatToNative] needs FLOAT or HALF as the native type; "
        "got " +
        type.toString() + ". Use SpecType::FP32 or FP16.");
  checkHolds(type, f);
  checkHolds(input.elementType(), f);
  Sequence steps({}, debugContext);
  const bool is_packed =
      input.elementType() == poplar::CHAR || input.elementType() == poplar::SHORT;
  Tensor out = is_packed ? internal::unpack(graph, input, f, steps) : input;
  out = popops::cast(graph, out, type, steps);
  prog.add(steps);
  return out;
}

Tensor GfloatCast::castGfloatToNative(Graph& graph, Tensor input, const Tensor& param,
                                      const poplar::ComputeSet& cs, const CastConfig& gfCastCfg) {
  Sequence steps;
  const Tensor out = castGfloatToNative(graph, std::move(input), param, steps, gfCastCfg);
  cs.steps()->children.push_back(steps.node());
  return out;
}

Tensor GfloatCast::castGfloatToNative(Graph& graph, Tensor input, Sequence& prog,
                                      const poplar::DebugContext& debugContext) {
  return castGfloatToNative(graph, std::move(input), params("castGfloatToNative"), prog, to_native_,
                            debugContext);
}

Tensor GfloatCast::castGfloatToNative(Graph& graph, Tensor input, const poplar::ComputeSet& cs) {
  return castGfloatToNative(graph, std::move(input), params("castGfloatToNative"), cs, to_native_);
}

}  // namespace experimental
}  // namespace popfloat
