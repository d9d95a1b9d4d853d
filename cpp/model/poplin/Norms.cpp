#include "poplin/Norms.hpp"

#include <cmath>
#include <string>

#include "poplin/internal/VertexCycles.hpp"
#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Fill.hpp"
#include "popops/Reduce.hpp"
#include "popops/internal/Map.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace poplin {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::Type;
using poplar::program::Sequence;
using popops::Operation;
using popops::expr::_1;
using popops::expr::_2;
using popops::expr::_3;
using popops::expr::Any;
using popops::expr::Cast;
using popops::expr::Const;
using popops::expr::Max;
using popops::expr::Rsqrt;
using popops::expr::Square;

void checkActs(const Tensor& acts, const char* function) {
  const Type type = acts.elementType();
  if (acts.rank() >= 2 && acts.numElements() > 0 && (type == poplar::FLOAT || type == poplar::HALF))
    return;
  throw poputil::poplibs_error("[poplin::" + std::string(function) +
                               "] needs activations [N][C][field...] of FLOAT or HALF; got " +
                               acts.shapeToString() + " " + type.toString() +
                               ". Reshape or cast them.");
}

/// A vector [C] as [1][C][1...], in the type of the activations.
Tensor perChannel(Graph& graph, const Tensor& vector, const Tensor& acts, Sequence& prog,
                  const DebugContext& debug, const char* function) {
  checkActs(acts, function);
  if (vector.rank() != 1 || vector.dim(0) != acts.dim(1))
    throw poputil::poplibs_error("[poplin::" + std::string(function) +
                                 "] needs one value for each of the " +
                                 std::to_string(acts.dim(1)) + " channels; got " +
                                 vector.shapeToString() + ". Pass a vector of that length.");
  std::vector<std::size_t> shape(acts.rank(), 1);
  shape[1] = acts.dim(1);
  const Tensor same = vector.elementType() == acts.elementType()
                          ? vector
                          : popops::cast(graph, vector, acts.elementType(), prog, debug);
  return same.reshape(shape);
}

std::vector<std::size_t> allButChannels(const Tensor& acts) {
  std::vector<std::size_t> dims{0};
  for (unsigned i = 2; i < acts.rank(); ++i) dims.push_back(i);
  return dims;
}

Type wider(const Type& a, const Type& b) { return a == poplar::FLOAT ? a : b; }

/// Sums and means of the channels' elements, here and on other replicas.
class Means {
 public:
  Means(Graph& graph, const Tensor& acts, const Type& partials, Sequence& prog,
        const DebugContext& debug)
      : graph_(graph), partials_(wider(acts.elementType(), partials)), prog_(prog), debug_(debug) {
    count_ = static_cast<double>(acts.numElements() / acts.dim(1));
  }
  void distribute(const DistributedNormReduceCallback& callback, unsigned normSize,
                  std::size_t batch, const char* function) {
    if (normSize == 0 || normSize % batch != 0)
      throw poputil::poplibs_error(
          "[poplin::" + std::string(function) + "] needs a norm size that is a multiple of the " +
          std::to_string(batch) + " batch elements; got " + std::to_string(normSize) +
          ". Pass the batch size times the number of replicas.");
    callback_ = callback;
    group_ = normSize / static_cast<unsigned>(batch);
    count_ *= group_;
  }
  Tensor sum(const Tensor& t, Operation op) const { return reduce(t, partials_, op, "sum"); }
  /// This replica's share of the means over all replicas' elements; the reduction scales its
  /// result.
  Tensor share(const Tensor& t, const Type& type, Operation op) const {
    const Tensor scale =
        graph_.addConstant(poplar::FLOAT, {}, static_cast<float>(1 / count_), {debug_, "scale"});
    graph_.setTileMapping(scale, 0);
    return reduce(t, type, {op, false, scale}, "mean");
  }
  /// The means that the shares of all replicas add up to.
  std::vector<Tensor> of(const std::vector<Tensor>& shares) const {
    return group_ > 1 ? callback_(graph_, shares, prog_, group_, {debug_, "allReduce"}, {})
                      : shares;
  }
  const Type& partials() const { return partials_; }
  double count() const { return count_; }

 private:
  Tensor reduce(const Tensor& t, const Type& type, popops::ReduceParams params,
                const char* name) const {
    return popops::reduce(graph_, t, type, allButChannels(t), std::move(params), prog_,
                          {debug_, name});
  }

  Graph& graph_;
  Type partials_;
  Sequence& prog_;
  DebugContext debug_;
  DistributedNormReduceCallback callback_;
  unsigned group_ = 1;
  double count_;
};

/// One over the deviation, from the mean and the mean of squares or, if `stable`, the variance.
/// Source: poplin/codelets/InverseStdDeviation.cpp of PopLibs, which adds epsilon before it scales.
Tensor inverseDeviation(Graph& graph, const Tensor& mean, const Tensor& power, const Type& type,
                        float eps, bool unbiased, bool stable, const Means& means, Sequence& prog,
                        const DebugContext& debug) {
  const double n = means.count();
  const auto factor = static_cast<float>(unbiased && n > 1 ? n / (n - 1) : 1);
  const Any wide_mean{Cast(_1, poplar::FLOAT)}, wide_power{Cast(_2, poplar::FLOAT)};
  const Any variance = stable ? wide_power : Any(wide_power - Square(wide_mean));
  const Any inverse{Rsqrt((Max(variance, Const(0.0f)) + Const(eps)) * Const(factor))};
  const Tensor made = graph.clone(type, mean, {debug, "invStdDev"});
  const auto cycles = [&graph, grain = graph.getTarget().getVectorWidth(type)](std::uint64_t n) {
    return inverseStdDeviationCycles(n, grain, graph.getTarget().getNumWorkerContexts());
  };
  popops::internal::mapWithOutputs(graph, {Cast(inverse, type)}, {mean, power}, {made}, prog,
                                   {debug, "invStdDev"}, cycles);
  return made;
}

std::pair<Tensor, Tensor> statistics(Graph& graph, const Tensor& acts, float eps, Sequence& prog,
                                     bool unbiased, bool stable, const Means& means,
                                     const DebugContext& debug) {
  const Type type = acts.elementType();
  const Tensor sums = means.share(acts, type, Operation::ADD);
  std::vector<Tensor> both;
  if (stable) {
    const Tensor mean = means.of({sums})[0];
    const Tensor centred =
        popops::sub(graph, acts, perChannel(graph, mean, acts, prog, debug, "normStatistics"), prog,
                    {debug, "centred"});
    both = {mean, means.of({means.share(centred, means.partials(), Operation::SQUARE_ADD)})[0]};
  } else {
    both = means.of({sums, means.share(acts, means.partials(), Operation::SQUARE_ADD)});
  }
  return {both[0], inverseDeviation(graph, both[0], both[1], type, eps, unbiased, stable, means,
                                    prog, debug)};
}

/// Statistics of channels without elements: a mean of 0, a variance of 0.
std::pair<Tensor, Tensor> statisticsOfNothing(Graph& graph, const Tensor& acts, float eps,
                                              Sequence& prog, const DebugContext& debug) {
  const auto filled = [&](float value, const char* name) {
    const Tensor t = graph.addVariable(acts.elementType(), {acts.dim(1)},
                                       poplar::VariableMappingMethod::LINEAR, {debug, name});
    popops::fill(graph, t, prog, value, {debug, name});
    return t;
  };
  return {filled(0, "mean"), filled(1 / std::sqrt(eps), "invStdDev")};
}

Tensor statisticsGradients(Graph& graph, const Tensor& whitened, const Tensor& grads,
                           const Tensor& inverse, Sequence& prog, const Means& means,
                           const DebugContext& debug) {
  const char* name = "normStatisticsGradients";
  const Tensor product = popops::mul(graph, grads, whitened, prog, {debug, "product"});
  const auto both = means.of({means.share(grads, means.partials(), Operation::ADD),
                              means.share(product, means.partials(), Operation::ADD)});
  const auto expanded = [&](const Tensor& t) {
    return perChannel(graph, t, grads, prog, debug, name);
  };
  return popops::map(graph, (_1 - popops::expr::_4 - _2 * popops::expr::_5) * _3,
                     {grads, whitened, expanded(inverse), expanded(both[0]), expanded(both[1])},
                     prog, {debug, "gradient"});
}

}  // namespace

Tensor createNormGamma(Graph& graph, const Tensor& acts, const Type& type,
                       const DebugContext& debugContext) {
  checkActs(acts, "createNormGamma");
  return poputil::createBroadcastOperand(graph, acts, type, 1, false, {debugContext, "gamma"});
}
Tensor createNormGamma(Graph& graph, const Tensor& acts, const DebugContext& debugContext) {
  return createNormGamma(graph, acts, acts.elementType(), debugContext);
}
Tensor createNormBeta(Graph& graph, const Tensor& acts, const Type& type,
                      const DebugContext& debugContext) {
  checkActs(acts, "createNormBeta");
  return poputil::createBroadcastOperand(graph, acts, type, 1, false, {debugContext, "beta"});
}
Tensor createNormBeta(Graph& graph, const Tensor& acts, const DebugContext& debugContext) {
  return createNormBeta(graph, acts, acts.elementType(), debugContext);
}
std::pair<Tensor, Tensor> createNormParams(Graph& graph, const Tensor& acts,
                                           const DebugContext& debugContext) {
  return {createNormGamma(graph, acts, debugContext), createNormBeta(graph, acts, debugContext)};
}

std::pair<Tensor, Tensor> normStatistics(Graph& graph, const Tensor& acts, float eps,
                                         Sequence& prog, bool unbiasedVarEstimate, bool stableAlgo,
                                         const Type& partialsType, const DebugContext& debugContext,
                                         const OptionFlags&) {
  if (acts.rank() >= 2 && acts.numElements() == 0)
    return statisticsOfNothing(graph, acts, eps, prog, debugContext);
  checkActs(acts, "normStatistics");
  Means means(graph, acts, partialsType, prog, debugContext);
  return statistics(graph, acts, eps, prog, unbiasedVarEstimate, stableAlgo, means, debugContext);
}

std::pair<Tensor, Tensor> distributedNormStatistics(
    Graph& graph, const Tensor& acts, float eps, Sequence& prog, bool unbiasedVarEstimate,
    DistributedNormReduceCallback allReduceCallback, unsigned normSize, bool stableAlgo,
    const Type& partialsType, const DebugContext& debugContext, const OptionFlags&) {
  checkActs(acts, "distributedNormStatistics");
  Means means(graph, acts, partialsType, prog, debugContext);
  means.distribute(allReduceCallback, normSize, acts.dim(0), "distributedNormStatistics");
  return statistics(graph, acts, eps, prog, unbiasedVarEstimate, stableAlgo, means, debugContext);
}

Tensor normWhiten(Graph& graph, const Tensor& acts, const Tensor& mean, const Tensor& iStdDev,
                  Sequence& prog, const DebugContext& debugContext, const OptionFlags&) {
  const Tensor m = perChannel(graph, mean, acts, prog, debugContext, "normWhiten");
  const Tensor s = perChannel(graph, iStdDev, acts, prog, debugContext, "normWhiten");
  return popops::map(graph, (_1 - _2) * _3, {acts, m, s}, prog, {debugContext, "whitened"});
}

Tensor normalise(Graph& graph, const Tensor& actsWhitened, const Tensor& gamma, const Tensor& beta,
                 Sequence& prog, const DebugContext& debugContext, const OptionFlags&) {
  const Tensor g = perChannel(graph, gamma, actsWhitened, prog, debugContext, "normalise");
  const Tensor b = perChannel(graph, beta, actsWhitened, prog, debugContext, "normalise");
  return popops::map(graph, _1 * _2 + _3, {actsWhitened, g, b}, prog, {debugContext, "normalised"});
}

std::pair<Tensor, Tensor> normParamGradients(Graph& graph, const Tensor& actsWhitened,
                                             const Tensor& gradsIn, Sequence& prog,
                                             const Type& partialsType,
                                             const DebugContext& debugContext, const OptionFlags&) {
  checkActs(actsWhitened, "normParamGradients");
  const Type type = gradsIn.elementType();
  Means means(graph, gradsIn, partialsType, prog, debugContext);
  const auto sum = [&](const Tensor& t) {
    const Tensor s = means.sum(t, Operation::ADD);
    return s.elementType() == type ? s : popops::cast(graph, s, type, prog, debugContext);
  };
  const Tensor product = popops::mul(graph, gradsIn, actsWhitened, prog, {debugContext, "product"});
  const Tensor gamma = sum(product);
  return {gamma, sum(gradsIn)};
}

Tensor normGradients(Graph& graph, const Tensor& gradsIn, const Tensor& gamma, Sequence& prog,
                     const DebugContext& debugContext, const OptionFlags&) {
  const Tensor g = perChannel(graph, gamma, gradsIn, prog, debugContext, "normGradients");
  return popops::mul(graph, gradsIn, g, prog, {debugContext, "gradient"});
}

Tensor normStatisticsGradients(Graph& graph, const Tensor& actsWhitened, const Tensor& gradsIn,
                               const Tensor& invStdDev, Sequence& prog, const Type& partialsType,
                               const DebugContext& debugContext, const OptionFlags&) {
  checkActs(gradsIn, "normStatisticsGradients");
  Means means(graph, gradsIn, partialsType, prog, debugContext);
  return statisticsGradients(graph, actsWhitened, gradsIn, invStdDev, prog, means, debugContext);
}

Tensor distributedNormStatisticsGradients(Graph& graph, const Tensor& actsWhitened,
                                          const Tensor& gradsIn, const Tensor& invStdDev,
                                          Sequence& prog,
                                          DistributedNormReduceCallback reduceCallback,
                                          unsigned normSize, const Type& partialsType,
                                          const DebugContext& debugContext, const OptionFlags&) {
  checkActs(gradsIn, "distributedNormStatisticsGradients");
  Means means(graph, gradsIn, partialsType, prog, debugContext);
  means.distribute(reduceCallback, normSize, gradsIn.dim(0), "distributedNormStatisticsGradients");
  return statisticsGradients(graph, actsWhitened, gradsIn, invStdDev, prog, means, debugContext);
}

}  // namespace poplin
