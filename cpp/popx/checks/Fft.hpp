#pragma once
#include <vector>

#include "popx/Fft.hpp"

/// For the library: the checks of popx::fft.
namespace popx::fourier {

/// Whether the argument (or the `result`) of a transform is real.
bool isReal(FftType type, bool result);

/// The result's shape. Throws if the argument does not match the lengths.
std::vector<std::size_t> resultShape(const Parts& a, FftType type,
                                     const std::vector<std::size_t>& lengths);

}  // namespace popx::fourier
