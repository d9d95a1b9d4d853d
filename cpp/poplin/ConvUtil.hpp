#pragma once
#include <cstdint>

#include "poplin/ConvParams.hpp"

namespace poplin {

/// The convolution that gives the gradient with respect to `params`' input: from the gradient of
/// the output [N, G*Co, ...] and the forward weights, transposed and flipped.
ConvParams getGradientParams(const ConvParams& params);

/// The convolution that gives the gradient with respect to `params`' weights: input channels
/// change places with the batch, and the gradient of the output is the kernel.
ConvParams getWeightUpdateParams(const ConvParams& params);

unsigned getDilatedSize(unsigned size, unsigned dilation);

/// The input element that takes part in output `out` by kernel element `kernel` of dimension `dim`,
/// or ~0U where that is padding or an inserted zero.
unsigned getInputIndex(unsigned dim, unsigned out, unsigned kernel, const ConvParams& params);

/// Floating-point operations of the forward pass: two for each product that is not with padding or
/// an inserted zero. The other passes take as many.
std::uint64_t getFwdFlops(const ConvParams& params);
std::uint64_t getBwdFlops(const ConvParams& params);
std::uint64_t getWuFlops(const ConvParams& params);

}  // namespace poplin
