#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/ThreadPool.hpp"
#include "engine/kernels/FftPasses.hpp"

namespace ipujax::engine {

/// Which transform a step "popx.fft" does; popx/Fft.hpp says what they are.
enum class FftType { FFT, IFFT, RFFT, IRFFT };

}  // namespace ipujax::engine

namespace ipujax::engine::fourier {

/// Many complex lines of one length. Strides are in floats. Real and imaginary parts lie apart; a
/// null imaginary input is zeros, a null output is not wanted. The results may replace the inputs.
/// Swapping the two parts of input and output makes the inverse (times the length).
struct Lines {
  struct Dim {
    std::int64_t size;
    std::int64_t in_stride;
    std::int64_t out_stride;
  };
  const float* in_re = nullptr;
  const float* in_im = nullptr;
  std::int64_t in_stride = 1;
  float* out_re = nullptr;
  float* out_im = nullptr;
  std::int64_t out_stride = 1;
  std::vector<Dim> dims;  ///< over the lines
  float scale = 1.0f;
};

/// How to transform lines of one length: made once, run by any threads. Short lines go sixteen at a
/// time through Stockham's passes; a long line is cut into a matrix whose columns and then rows are
/// such lines; a length with a large prime factor becomes a convolution of a friendlier one
/// (Bluestein). Twiddles are computed in double and rounded once.
class Plan {
 public:
  virtual ~Plan() = default;
  virtual void run(ThreadPool& pool, const Lines& lines) const = 0;

  /// `num_lines` decides how short lines are shared out.
  static std::shared_ptr<const Plan> make(std::int64_t length, std::int64_t num_lines);
};

std::int64_t largestPrimeFactor(std::int64_t n);

}  // namespace ipujax::engine::fourier
