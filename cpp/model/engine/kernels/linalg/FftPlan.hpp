#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/ThreadPool.hpp"
#include "engine/kernels/linalg/FftPasses.hpp"

namespace ipujax::engine {

/// Which transform a step "popx.fft" performs; popx/Fft.hpp describes them.
enum class FftType { FFT, IFFT, RFFT, IRFFT };

}  // namespace ipujax::engine

namespace ipujax::engine::fourier {

/// A dimension over lines.
struct Dim {
  std::int64_t size;
  std::int64_t in_stride;
  std::int64_t out_stride;
};

/// Many complex lines of one length, of float or double. Strides count these numbers. Real and
/// imaginary parts are separate arrays; a null imaginary input is zeros, a null output is not
/// written. The results may replace the inputs. Swapping the two parts of input and output gives
/// the inverse (times the length).
template <class T>
struct Lines {
  const T* in_re = nullptr;
  const T* in_im = nullptr;
  std::int64_t in_stride = 1;
  T* out_re = nullptr;
  T* out_im = nullptr;
  std::int64_t out_stride = 1;
  std::vector<Dim> dims;  ///< over the lines
  T scale = 1;
};

/// How to transform lines of one length: made once, run by any threads. Short lines go sixteen at a
/// time through Stockham's passes; a long line is cut into a matrix whose columns and then rows are
/// such lines; a length with a large prime factor becomes a convolution of a friendlier one
/// (Bluestein). Twiddles are computed in double and rounded once to T.
template <class T>
class Plan {
 public:
  virtual ~Plan() = default;
  virtual void run(ThreadPool& pool, const Lines<T>& lines) const = 0;

  /// `num_lines` decides how short lines are shared out.
  static std::shared_ptr<const Plan> make(std::int64_t length, std::int64_t num_lines);
};

/// e^(-2 pi i k / n).
std::pair<double, double> root(std::int64_t k, std::int64_t n);

std::int64_t largestPrimeFactor(std::int64_t n);

}  // namespace ipujax::engine::fourier
