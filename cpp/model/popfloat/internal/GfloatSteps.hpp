#pragma once
#include <algorithm>
#include <cmath>

#include "popfloat/experimental/CastToGfloat.hpp"

namespace popfloat {
namespace experimental {
namespace internal {

/// A format, and what follows from it.
struct Format {
  int mantissa;
  int exponent;
  int bias;
  bool denorms;
  bool infs;

  int lowestExponent() const { return 1 - bias; }
  /// At most FLOAT's, in which casts compute: greater values of a format never come up.
  int highestExponent() const {
    constexpr int kMostBits = 9;  // more than FLOAT's exponents for each bias of 8 bits
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

/// FLOAT rounded to values of the format, as castNativeToGfloat says.
poplar::Tensor quantise(poplar::Graph& graph, const poplar::Tensor& x, const Format& f,
                        const GfloatCast::CastConfig& config, poplar::program::Sequence& prog);

/// Of values of the format, as FLOAT: their bits, as CHAR or SHORT.
poplar::Tensor pack(poplar::Graph& graph, const poplar::Tensor& q, const Format& f,
                    const poplar::Type& type, poplar::program::Sequence& prog);

/// What `pack` packed, as FLOAT.
poplar::Tensor unpack(poplar::Graph& graph, const poplar::Tensor& packed, const Format& f,
                      poplar::program::Sequence& prog);

}  // namespace internal
}  // namespace experimental
}  // namespace popfloat
