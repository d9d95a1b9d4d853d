#pragma once
#include <cstdint>

#include "engine/simd/Isa.hpp"

namespace ipujax::engine::fourier {

/// Lines are transformed sixteen at a time, side by side: element j of line b is at [j][b].
constexpr std::int64_t kLanes = 16;
/// Prime factors up to this have a pass; a length with a larger one goes through a convolution.
constexpr std::int64_t kLargestRadix = 31;

/// One pass of Stockham's algorithm over a block: splits sub-transforms of length radix * m into
/// ones of length m; `span` numbers (lanes included) are contiguous. Twiddles are
/// [m - 1][radix - 1] of (re, im), for p = 1 ... m - 1; roots are cos and sin of 2 pi j / radix for
/// the general pass.
template <class T>
struct Pass {
  std::int64_t radix;
  std::int64_t m;
  std::int64_t span;
  const T* twiddles;
  const T* roots;
};

/// Operations on blocks of T, float or double.
template <class T>
struct PassTable {
  void (*run)(const Pass<T>& pass, const T* in_re, const T* in_im, T* out_re, T* out_im);
  void (*scale)(T* x, T factor, std::int64_t n);
  /// (re, im)[i] *= (w_re, w_im)[i].
  void (*multiply)(T* re, T* im, const T* w_re, const T* w_im, std::int64_t n);
  /// The first half + 1 results of a real line of 2 * half numbers from the transform z of its
  /// even + i odd elements; w_k = e^(-2 pi i k / (2 half)), k = 0 ... half.
  void (*unpack)(const T* z_re, const T* z_im, std::int64_t half, const T* w_re, const T* w_im,
                 T* out_re, T* out_im);
  /// The inverse: z from those half + 1 numbers. The imaginary parts of the ends are not read.
  void (*pack)(const T* in_re, const T* in_im, std::int64_t half, const T* w_re, const T* w_im,
               T* z_re, T* z_im);
};
IPUJAX_DECLARE_SIMD(extern const PassTable<float> kFloatPasses)
IPUJAX_DECLARE_SIMD(extern const PassTable<double> kDoublePasses)

/// The passes for this CPU.
template <class T>
const PassTable<T>& passes();
template <>
inline const PassTable<float>& passes() {
  static const PassTable<float>& picked = IPUJAX_PICK(kFloatPasses);
  return picked;
}
template <>
inline const PassTable<double>& passes() {
  static const PassTable<double>& picked = IPUJAX_PICK(kDoublePasses);
  return picked;
}

}  // namespace ipujax::engine::fourier
