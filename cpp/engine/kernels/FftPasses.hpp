#pragma once
#include <cstdint>

#include "engine/simd/Isa.hpp"

namespace ipujax::engine::fourier {

/// Lines are transformed sixteen at a time, side by side: element j of line b is at [j][b].
constexpr std::int64_t kLanes = 16;
/// Prime factors up to this have a pass; a length with a larger one goes through a convolution.
constexpr std::int64_t kLargestRadix = 31;

/// One pass of Stockham's algorithm over a block: sub-transforms of length radix * m become m-fold,
/// `span` floats (lanes included) lie side by side. Twiddles are [m - 1][radix - 1] of (re, im),
/// for p = 1 ... m - 1; roots are cos and sin of 2 pi j / radix for the general pass.
struct Pass {
  std::int64_t radix;
  std::int64_t m;
  std::int64_t span;
  const float* twiddles;
  const float* roots;
};

struct PassTable {
  void (*run)(const Pass& pass, const float* in_re, const float* in_im, float* out_re,
              float* out_im);
  void (*scale)(float* x, float factor, std::int64_t n);
  /// (re, im)[i] *= (w_re, w_im)[i].
  void (*multiply)(float* re, float* im, const float* w_re, const float* w_im, std::int64_t n);
  /// The first half + 1 results of a real line of 2 * half numbers from the transform z of its
  /// even + i odd elements; w_k = e^(-2 pi i k / (2 half)), k = 0 ... half.
  void (*unpack)(const float* z_re, const float* z_im, std::int64_t half, const float* w_re,
                 const float* w_im, float* out_re, float* out_im);
  /// The inverse: z from those half + 1 numbers. The imaginary parts of the ends are not read.
  void (*pack)(const float* in_re, const float* in_im, std::int64_t half, const float* w_re,
               const float* w_im, float* z_re, float* z_im);
};
IPUJAX_DECLARE_SIMD(extern const PassTable kPassTable)

/// The passes for this CPU.
inline const PassTable& passes() {
  static const PassTable& picked = IPUJAX_PICK(kPassTable);
  return picked;
}

}  // namespace ipujax::engine::fourier
