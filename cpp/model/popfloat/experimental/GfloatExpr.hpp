#pragma once

namespace popfloat {
namespace experimental {

/// How a value between two values of a format is rounded.
enum class RoundType {
  INV,  ///< not set
  RZ,   ///< towards zero
  RN,   ///< to the nearest, ties to even
  RA,   ///< to the nearest, ties away from zero
  RU,   ///< up
  RD,   ///< down
  SR,   ///< stochastic, by all discarded bits
  SX    ///< stochastic, by some of these bits
};

/// How the values of a format are stored.
enum class FormatType {
  INVALID_FORMAT,
  IEEE_FP16,
  QUANTISED_FP32,      ///< in a float
  QUANTISED_FP16,      ///< in a half
  MIN_NORM_ALIGN_GF8,  ///< 8 bits, fewer than 5 of the exponent
  ONE_FIVE_TWO_GF8,    ///< 1/5/2 bits with infinities and NaN
  MAX_NORM_ALIGN_GF8,  ///< 1/5/2 bits without
  BFLOAT16,            ///< 1/8/7 bits
  NO_DENORM_GF16,      ///< 16 bits without subnormal values
  ENABLE_DENORM_GF16   ///< 16 bits with them
};

/// Distribution of the noise for stochastic rounding.
enum class SRDensityType {
  INVALID,
  UNIFORM,
  NORMAL,
  TRUNCATED_NORMAL,
  BERNOULLI,
  LOGISTIC,
  TRUNCATED_LOGISTIC,
  LAPLACE,
  TRUNCATED_LAPLACE,
  LOGIT_NORMAL,
  TRUNCATED_LOGIT_NORMAL
};

/// The type that holds a result; AUTO is the smallest that can.
enum class SpecType { FP32, FP16, INT8, INT16, INT32, AUTO };

}  // namespace experimental
}  // namespace popfloat
