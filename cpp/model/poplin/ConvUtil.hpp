#pragma once
#include <cstdint>
#include <utility>

#include "poplin/ConvParams.hpp"

namespace poplin {

/// The convolution that gives the gradient with respect to `params`' input: from the gradient of
/// the output [N, G*Co, ...] and the forward weights, transposed and flipped.
ConvParams getGradientParams(const ConvParams& params);

/// The convolution that gives the gradient with respect to `params`' weights: input channels are
/// swapped with the batch, and the gradient of the output is the kernel.
ConvParams getWeightUpdateParams(const ConvParams& params);

unsigned getDilatedSize(unsigned size, unsigned dilation);

/// The input element that kernel element `kernel` multiplies for output `out` in dimension `dim`,
/// or ~0U if that is padding or an inserted zero.
unsigned getInputIndex(unsigned dim, unsigned out, unsigned kernel, const ConvParams& params);
/// The kernel element that multiplies input element `in` for output `out`, or ~0U.
unsigned getKernelIndex(unsigned dim, unsigned out, unsigned in, const ConvParams& params);

// Ranges [first, second) of one dimension: the smallest that holds all matching elements, or {0, 0}
// if there are none.
using IndexRange = std::pair<unsigned, unsigned>;

/// The outputs of `out` to which these kernel or input elements contribute.
IndexRange getOutputRangeForKernelIndex(unsigned dim, IndexRange out, unsigned kernel,
                                        const ConvParams& params);
IndexRange getOutputRangeForInputIndex(unsigned dim, IndexRange out, unsigned in,
                                       const ConvParams& params);
IndexRange getOutputRangeForKernelRange(unsigned dim, IndexRange out, IndexRange kernel,
                                        const ConvParams& params);
IndexRange getOutputRangeForInputRange(unsigned dim, IndexRange out, IndexRange in,
                                       const ConvParams& params);
/// The input elements that contribute to these outputs through these kernel elements, or through
/// the whole kernel if none are given.
IndexRange getInputRange(unsigned dim, IndexRange out, unsigned kernel, const ConvParams& params);
IndexRange getInputRange(unsigned dim, IndexRange out, IndexRange kernel, const ConvParams& params);
inline IndexRange getInputRange(unsigned dim, unsigned out, IndexRange kernel,
                                const ConvParams& params) {
  return getInputRange(dim, IndexRange(out, out + 1), kernel, params);
}
inline IndexRange getInputRange(unsigned dim, IndexRange out, const ConvParams& params) {
  return getInputRange(dim, out, IndexRange(0, static_cast<unsigned>(params.kernelShape[dim])),
                       params);
}
inline IndexRange getInputRange(unsigned dim, unsigned out, const ConvParams& params) {
  return getInputRange(dim, IndexRange(out, out + 1), params);
}
/// The kernel elements through which these input elements contribute to these outputs.
IndexRange getKernelRange(unsigned dim, IndexRange out, unsigned in, const ConvParams& params);
IndexRange getKernelRange(unsigned dim, IndexRange out, IndexRange in, const ConvParams& params);

/// Floating-point operations of the forward pass: two for each product that is not with padding or
/// an inserted zero. The other passes take as many.
std::uint64_t getFwdFlops(const ConvParams& params);
std::uint64_t getBwdFlops(const ConvParams& params);
std::uint64_t getWuFlops(const ConvParams& params);

}  // namespace poplin
