#pragma once
#include <algorithm>
#include <cmath>

#include "popfloat/experimental/CastToGfloat.hpp"

namespace popfloat {
namespace experimental {
namespace internal {

/// A format, and quantities derived from it.
struct Format {
  int mantissa;
  int exponent;
  int bias;
  bool denorms;
  bool infs;

  int lowestExponent() const { return 1 - bias; }
  /// At most FLOAT's: casts compute in FLOAT, so greater values of a format never occur.
  int highestExponent() const {
    constexpr int kMostBits = 9;  // more than FLOAT's exponents for any 8-bit bias
    return std::min(127, (1 << std::min(exponent, kMostBits)) - (infs ? 2 : 1) - bias);
  }
  float smallestNormal() const { return std::ldexp(1.0f, lowestExponent()); }
  float largest() const {
    return std::ldexp(2.0f - std::ldexp(1.0f, -mantissa), highestExponent());
  }
  float unit() const { return std::ldexp(1.0f, mantissa); }
  bool fitsHalf() const {
    return mantissa <= 10 && highestExponent() <= 15 && lowestExponent() - mantissa >= -24;
  }
};

/// Rounds FLOAT to values of the format, as castNativeToGfloat does.
poplar::Tensor quantise(poplar::Graph& graph, const poplar::Tensor& x, const Format& f,
                        const GfloatCast::CastConfig& config, poplar::program::Sequence& prog);

/// Packs values of the format, given as FLOAT, into their bits, as CHAR or SHORT.
poplar::Tensor pack(poplar::Graph& graph, const poplar::Tensor& q, const Format& f,
                    const poplar::Type& type, poplar::program::Sequence& prog);

/// Unpacks the result of `pack` to FLOAT.
poplar::Tensor unpack(poplar::Graph& graph, const poplar::Tensor& packed, const Format& f,
                      poplar::program::Sequence& prog);

}  // namespace internal
}  // namespace experimental
}  // namespace popfloat
