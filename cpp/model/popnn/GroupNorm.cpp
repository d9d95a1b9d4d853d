#include "popnn/GroupNorm.hpp"

#include <string>

#include "poplar/exceptions.hpp"
#include "popnn/BatchNorm.hpp"
#include "poputil/exceptions.hpp"

namespace popnn::gn {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::Type;
using poplar::program::Sequence;
using Pair = std::pair<Tensor, Tensor>;

namespace {

bool isStrided(const OptionFlags& options) {
  bool strided = true;
  for (const auto& [name, value] : options) {
    if (name != "groupNormStridedChannelGrouping" || (value != "true" && value != "false"))
      throw poplar::invalid_option(
          "[popnn::gn] needs the option groupNormStridedChannelGrouping, true or false; got " +
          name + "=" + value + ".");
    strided = value == "true";
  }
  return strided;
}

/// Views activations [B][C][field...] as [channels of a group][B * groups][field...].
struct Grouping {
  Grouping(const Tensor& acts, std::size_t groups, const OptionFlags& options)
      : batch(acts.rank() < 2 ? 0 : acts.dim(0)),
        channels(acts.rank() < 2 ? 0 : acts.dim(1)),
        groups(groups),
        strided(isStrided(options)) {
    if (batch > 0 && channels > 0 && groups > 0 && channels % groups == 0) return;
    throw poputil::poplibs_error(
        "[popnn::gn] needs activations [B][C][field...] with C a multiple of the groups; got " +
        acts.shapeToString() + " and " + std::to_string(groups) +
        " groups. Change the number of groups.");
  }
  Tensor group(const Tensor& t) const {
    const auto parts = strided ? t.reshapePartial(1, 2, {channels / groups, groups}).dimRoll(2, 1)
                               : t.reshapePartial(1, 2, {groups, channels / groups});
    return parts.reshapePartial(0, 2, {batch * groups}).dimRoll(1, 0);
  }
  Tensor ungroup(const Tensor& t) const {
    const auto parts = t.dimRoll(1, 0).reshapePartial(0, 1, {batch, groups});
    return (strided ? parts.dimRoll(1, 2) : parts).reshapePartial(1, 3, {channels});
  }

  std::size_t batch, channels, groups;
  bool strided;
};

/// The groups to which statistics [B * groups] belong.
Grouping groupingOf(const Tensor& acts, const Tensor& statistic, const OptionFlags& options) {
  const std::size_t batch = acts.rank() == 0 ? 0 : acts.dim(0);
  const std::size_t n = statistic.numElements();
  return {acts, batch == 0 || n % batch != 0 ? 0 : n / batch, options};
}

}  // namespace

Pair groupNormStatistics(Graph& graph, const Tensor acts, float eps, Sequence& prog,
                         unsigned numGroups, bool unbiasedVarEstimate, bool stableAlgo,
                         const Type& partialsType, const DebugContext& debugContext,
                         const OptionFlags& options) {
  if (acts.rank() >= 2 && acts.numElements() == 0)
    return poplin::normStatistics(graph, acts.reshape({0, acts.dim(0) * numGroups}), eps, prog,
                                  unbiasedVarEstimate, stableAlgo, partialsType, debugContext);
  const Grouping grouping(acts, numGroups, options);
  return poplin::normStatistics(graph, grouping.group(acts), eps, prog, unbiasedVarEstimate,
                                stableAlgo, partialsType, debugContext);
}

Tensor groupNormWhiten(Graph& graph, const Tensor& acts, const Tensor& mean,
                       const Tensor& invStdDev, Sequence& prog, const DebugContext& debugContext,
                       const OptionFlags& options) {
  const Grouping grouping = groupingOf(acts, mean, options);
  return grouping.ungroup(
      poplin::normWhiten(graph, grouping.group(acts), mean, invStdDev, prog, debugContext));
}

Pair groupNormalise(Graph& graph, const Tensor& acts, const Tensor& gamma, const Tensor& beta,
                    const Tensor& mean, const Tensor& invStdDev, Sequence& prog,
                    const DebugContext& debugContext, const OptionFlags& options) {
  const Tensor whitened =
      groupNormWhiten(graph, acts, mean, invStdDev, prog, debugContext, options);
  return {poplin::normalise(graph, whitened, gamma, beta, prog, debugContext), whitened};
}

Pair groupNormParamGradients(Graph& graph, const Tensor& acts, const Tensor& gradsIn,
                             const Tensor& mean, const Tensor& iStdDev, Sequence& prog,
                             const Type& partialsType, const DebugContext& debugContext,
                             const OptionFlags& options) {
  const Tensor whitened = groupNormWhiten(graph, acts, mean, iStdDev, prog, debugContext, options);
  return groupNormParamGradients(graph, whitened, gradsIn, prog, partialsType, debugContext,
                                 options);
}
Pair groupNormParamGradients(Graph& graph, const Tensor& actsWhitened, const Tensor& gradsIn,
                             Sequence& prog, const Type& partialsType,
                             const DebugContext& debugContext, const OptionFlags& options) {
  isStrided(options);
  return poplin::normParamGradients(graph, actsWhitened, gradsIn, prog, partialsType, debugContext);
}

Tensor groupNormGradients(Graph& graph, const Tensor& acts, const Tensor& gradsIn,
                          const Tensor& mean, const Tensor& invStdDev, const Tensor& gamma,
                          Sequence& prog, const Type& partialsType,
                          const DebugContext& debugContext, const OptionFlags& options) {
  const Tensor whitened =
      groupNormWhiten(graph, acts, mean, invStdDev, prog, debugContext, options);
  return groupNormGradients(graph, whitened, gradsIn, invStdDev, gamma, prog, partialsType,
                            debugContext, options);
}
Tensor groupNormGradients(Graph& graph, const Tensor& actsWhitened, const Tensor& gradsIn,
                          const Tensor& invStdDev, const Tensor& gamma, Sequence& prog,
                          const Type& partialsType, const DebugContext& debugContext,
                          const OptionFlags& options) {
  const Grouping grouping = groupingOf(actsWhitened, invStdDev, options);
  const Tensor grads = poplin::normGradients(graph, gradsIn, gamma, prog, debugContext);
  return grouping.ungroup(poplin::normStatisticsGradients(graph, grouping.group(actsWhitened),
                                                          grouping.group(grads), invStdDev, prog,
                                                          partialsType, debugContext));
}

void groupNormParamUpdate(Graph& graph, const Tensor& gammaDelta, const Tensor& betaDelta,
                          float scale, Tensor& gamma, Tensor& beta, Sequence& prog,
                          const DebugContext& debugContext, const OptionFlags& options) {
  isStrided(options);
  bn::batchNormParamUpdate(graph, gammaDelta, betaDelta, scale, gamma, beta, prog, debugContext);
}
void groupNormParamUpdate(Graph& graph, const Tensor& gammaDelta, const Tensor& betaDelta,
                          const Tensor& scale, Tensor& gamma, Tensor& beta, Sequence& prog,
                          const DebugContext& debugContext, const OptionFlags& options) {
  isStrided(options);
  bn::batchNormParamUpdate(graph, gammaDelta, betaDelta, scale, gamma, beta, prog, debugContext);
}

}  // namespace popnn::gn
