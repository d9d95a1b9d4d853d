#pragma once
#include "popx/Parts.hpp"

namespace popx {

enum class FftType { FFT, IFFT, RFFT, IRFFT };

/// Discrete Fourier transforms of the last one to three dimensions, of any lengths, in float, or in
/// the double of emulated programs, which an IPU computes in software. FFT and IFFT
/// take and return complex numbers {re, im}; RFFT takes real ones and returns the first n / 2 + 1
/// of the last dimension, IRFFT takes these and returns n real ones (the imaginary parts of the
/// first, and of the last if n is even, count as zero). The inverses divide by the number of
/// elements.
/// The model counts: passes of butterflies over the tiles with an exchange between those that a
/// tile cannot do on the elements it has.
Parts fft(Graph& graph, const Parts& a, FftType type, const std::vector<std::size_t>& lengths,
          Sequence& prog, const DebugContext& debugContext = {});

}  // namespace popx
