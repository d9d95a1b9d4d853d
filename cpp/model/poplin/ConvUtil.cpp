#include "poplin/ConvUtil.hpp"

#include <algorithm>
#include <utility>

#include "poplin/Convolution.hpp"

namespace poplin {
namespace {

/// Zeros to put above the dilated gradient of the output so that it covers the whole untransformed
/// output: what truncation cut off and what the last stride skipped.
unsigned upperGap(const ConvParams& p, std::size_t d) {
  const auto& o = p.outputTransform;
  const std::size_t kept = p.getOutputSize(d) - o.paddingLower[d] - o.paddingUpper[d];
  const std::size_t covered =
      o.truncationLower[d] + getDilatedSize(static_cast<unsigned>(kept), o.stride[d]);
  const std::size_t full = p.getUntransformedOutputSize(d);
  return static_cast<unsigned>(full > covered ? full - covered : 0);
}

/// The transform of an operand's gradient: the inverse of the operand's own.
ConvParams::OutputTransform inverse(const ConvParams::InputTransform& t) {
  return {t.paddingLower, t.paddingUpper, t.dilation, t.truncationLower, t.truncationUpper};
}

/// The transform that makes the output's gradient cover the whole untransformed output.
ConvParams::InputTransform inverseOfOutput(const ConvParams& p) {
  const auto& o = p.outputTransform;
  std::vector<unsigned> above;
  for (std::size_t d = 0; d < p.getNumFieldDims(); ++d) above.push_back(upperGap(p, d));
  const std::vector<bool> flip(above.size());
  return {o.paddingLower, o.paddingUpper, o.stride, o.truncationLower, std::move(above), flip};
}

}  // namespace

unsigned getDilatedSize(unsigned size, unsigned dilation) {
  return size == 0 ? 0 : (size - 1) * dilation + 1;
}

ConvParams getGradientParams(const ConvParams& p) {
  ConvParams::InputTransform in = inverseOfOutput(p), kernel = p.kernelTransform;
  std::swap(kernel.truncationLower, kernel.truncationUpper);
  std::swap(kernel.paddingLower, kernel.paddingUpper);
  for (std::size_t d = 0; d < p.getNumFieldDims(); ++d) {
    const auto size = static_cast<unsigned>(p.getTransformedKernelSize(d));
    const unsigned border = size == 0 ? 0 : size - 1;
    in.paddingLower[d] += border;
    in.paddingUpper[d] += border;
    if (p.inputTransform.flip[d]) {  // both flipped: the result comes out flipped
      in.flip[d] = true;
      kernel.flip[d] = !kernel.flip[d];
    }
  }
  return ConvParams(p.outputType, p.inputType, p.batchSize, p.getOutputFieldShape(), p.kernelShape,
                    p.outputChannelsPerConvGroup, p.inputChannelsPerConvGroup, p.numConvGroups, in,
                    kernel, inverse(p.inputTransform));
}

ConvParams getWeightUpdateParams(const ConvParams& p) {
  ConvParams::InputTransform in = p.inputTransform, kernel = inverseOfOutput(p);
  for (std::size_t d = 0; d < p.getNumFieldDims(); ++d) {
    if (p.kernelTransform.flip[d]) {
      in.flip[d] = !in.flip[d];
      kernel.flip[d] = true;
    }
  }
  return ConvParams(p.inputType, p.outputType, p.inputChannelsPerConvGroup, p.inputFieldShape,
                    p.getOutputFieldShape(), p.batchSize, p.outputChannelsPerConvGroup,
                    p.numConvGroups, in, kernel, inverse(p.kernelTransform));
}

unsigned getInputIndex(unsigned dim, unsigned out, unsigned kernel, const ConvParams& p) {
  constexpr unsigned kNone = ~0U;
  const auto& o = p.outputTransform;
  const auto& k = p.kernelTransform;
  const auto& in = p.inputTransform;
  if (out < o.paddingLower[dim] || out >= p.getOutputSize(dim) - o.paddingUpper[dim]) return kNone;
  if (kernel < k.truncationLower[dim] || kernel >= p.kernelShape[dim] - k.truncationUpper[dim])
    return kNone;
  std::size_t at = k.paddingLower[dim] + (kernel - k.truncationLower[dim]) * k.dilation[dim];
  if (k.flip[dim]) at = p.getTransformedKernelSize(dim) - 1 - at;
  at += o.truncationLower[dim] + (out - o.paddingLower[dim]) * o.stride[dim];
  if (in.flip[dim]) at = p.getTransformedInputSize(dim) - 1 - at;
  if (at < in.paddingLower[dim]) return kNone;
  at -= in.paddingLower[dim];
  if (at % in.dilation[dim] != 0) return kNone;
  at /= in.dilation[dim];
  if (at >= p.getTruncatedInputSize(dim)) return kNone;
  return static_cast<unsigned>(at) + in.truncationLower[dim];
}

std::uint64_t getFwdFlops(const ConvParams& p) {
  std::uint64_t products = 1;
  for (unsigned d = 0; d < p.getNumFieldDims(); ++d) {
    std::uint64_t used = 0;
    const auto outputs = static_cast<unsigned>(p.getOutputSize(d));
    const auto kernels = static_cast<unsigned>(p.kernelShape[d]);
    for (unsigned out = 0; out < outputs; ++out)
      for (unsigned k = 0; k < kernels; ++k) used += getInputIndex(d, out, k, p) != ~0U;
    products *= used;
  }
  return 2 * products * p.batchSize * p.numConvGroups * p.inputChannelsPerConvGroup *
         p.outputChannelsPerConvGroup;
}

double getFwdPerfectCycleCount(const poplar::Graph& graph, const ConvParams& params) {
  const auto& target = graph.getTarget();
  const bool is_half = params.inputType == poplar::HALF;
  const double per_tile =
      is_half ? target.getFp16InFp16OutConvUnitsPerTile() * target.getVectorWidth(poplar::HALF)
              : target.getFp32InFp32OutConvUnitsPerTile() * target.getVectorWidth(poplar::FLOAT);
  return static_cast<double>(getFwdFlops(params)) / 2 / (per_tile * target.getNumTiles());
}
double getBwdPerfectCycleCount(const poplar::Graph& graph, const ConvParams& params) {
  return getFwdPerfectCycleCount(graph, params);
}
double getWuPerfectCycleCount(const poplar::Graph& graph, const ConvParams& params) {
  return getFwdPerfectCycleCount(graph, params);
}

std::uint64_t getBwdFlops(const ConvParams& params) { return getFwdFlops(params); }
std::uint64_t getWuFlops(const ConvParams& params) { return getFwdFlops(params); }

unsigned getKernelIndex(unsigned dim, unsigned out, unsigned in, const ConvParams& p) {
  for (unsigned k = 0; k < p.kernelShape[dim]; ++k)
    if (getInputIndex(dim, out, k, p) == in) return k;
  return ~0U;
}

namespace {

IndexRange one(unsigned i) { return {i, i + 1}; }

/// The range of pick(output, kernel element, input element), over all that meet and whose input
/// element is in `in`.
template <class Pick>
IndexRange rangeOf(unsigned dim, IndexRange out, IndexRange kernel, IndexRange in,
                   const ConvParams& p, const Pick& pick) {
  IndexRange range{0, 0};
  for (unsigned o = out.first; o < out.second; ++o) {
    for (unsigned k = kernel.first; k < kernel.second; ++k) {
      const unsigned i = getInputIndex(dim, o, k, p);
      if (i == ~0U || i < in.first || i >= in.second) continue;
      const unsigned picked = pick(o, k, i);
      const bool is_first = range.first == range.second;
      range = {is_first ? picked : std::min(range.first, picked),
               is_first ? picked + 1 : std::max(range.second, picked + 1)};
    }
  }
  return range;
}

IndexRange allOf(std::size_t size) { return {0, static_cast<unsigned>(size)}; }

}  // namespace

IndexRange getOutputRangeForKernelRange(unsigned dim, IndexRange out, IndexRange kernel,
                                        const ConvParams& p) {
  return rangeOf(dim, out, kernel, allOf(p.inputFieldShape[dim]), p,
                 [](unsigned o, unsigned, unsigned) { return o; });
}
IndexRange getOutputRangeForInputRange(unsigned dim, IndexRange out, IndexRange in,
                                       const ConvParams& p) {
  return rangeOf(dim, out, allOf(p.kernelShape[dim]), in, p,
                 [](unsigned o, unsigned, unsigned) { return o; });
}
IndexRange getOutputRangeForKernelIndex(unsigned dim, IndexRange out, unsigned kernel,
                                        const ConvParams& p) {
  return getOutputRangeForKernelRange(dim, out, one(kernel), p);
}
IndexRange getOutputRangeForInputIndex(unsigned dim, IndexRange out, unsigned in,
                                       const ConvParams& p) {
  return getOutputRangeForInputRange(dim, out, one(in), p);
}
IndexRange getInputRange(unsigned dim, IndexRange out, IndexRange kernel, const ConvParams& p) {
  return rangeOf(dim, out, kernel, allOf(p.inputFieldShape[dim]), p,
                 [](unsigned, unsigned, unsigned i) { return i; });
}
IndexRange getInputRange(unsigned dim, IndexRange out, unsigned kernel, const ConvParams& p) {
  return getInputRange(dim, out, one(kernel), p);
}
IndexRange getKernelRange(unsigned dim, IndexRange out, IndexRange in, const ConvParams& p) {
  return rangeOf(dim, out, allOf(p.kernelShape[dim]), in, p,
                 [](unsigned, unsigned k, unsigned) { return k; });
}
IndexRange getKernelRange(unsigned dim, IndexRange out, unsigned in, const ConvParams& p) {
  return getKernelRange(dim, out, one(in), p);
}

}  // namespace poplin
