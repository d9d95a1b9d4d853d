#include "popfloat/experimental/GfloatExprUtil.hpp"

#include <cstddef>

#include "poputil/exceptions.hpp"

namespace popfloat {
namespace experimental {
namespace {

/// The name of an enumerator by its number.
template <class Enum, std::size_t N>
std::string nameOf(const char* where, const char* const (&names)[N], Enum value) {
  const auto number = static_cast<std::size_t>(value);
  if (number < N) return names[number];
  throw poputil::poplibs_error(std::string("[popfloat::") + where +
                               "] needs an enumerator of its type; got the number " +
                               std::to_string(number) + ". Use one of the names.");
}

}  // namespace

std::string roundTypeToString(RoundType rmode) {
  constexpr const char* kNames[] = {"INV", "RZ", "RN", "RA", "RU", "RD", "SR", "SX"};
  return nameOf("roundTypeToString", kNames, rmode);
}

std::string formatTypeToString(FormatType fmt) {
  constexpr const char* kNames[] = {"INVALID_FORMAT",     "IEEE_FP16",          "QUANTISED_FP32",
                                    "QUANTISED_FP16",     "MIN_NORM_ALIGN_GF8", "ONE_FIVE_TWO_GF8",
                                    "MAX_NORM_ALIGN_GF8", "BFLOAT16",           "NO_DENORM_GF16",
                                    "ENABLE_DENORM_GF16"};
  return nameOf("formatTypeToString", kNames, fmt);
}

std::string srDensityTypeToString(SRDensityType dist) {
  constexpr const char* kNames[] = {"INVALID",
                                    "UNIFORM",
                                    "NORMAL",
                                    "TRUNCATED_NORMAL",
                                    "BERNOULLI",
                                    "LOGISTIC",
                                    "TRUNCATED_LOGISTIC",
                                    "LAPLACE",
                                    "TRUNCATED_LAPLACE",
                                    "LOGIT_NORMAL",
                                    "TRUNCATED_LOGIT_NORMAL"};
  return nameOf("srDensityTypeToString", kNames, dist);
}

poplar::Type specTypeToPoplarType(SpecType specType) {
  switch (specType) {
    case SpecType::FP32:
      return poplar::FLOAT;
    case SpecType::FP16:
      return poplar::HALF;
    case SpecType::INT8:
      return poplar::CHAR;
    case SpecType::INT16:
      return poplar::SHORT;
    case SpecType::INT32:
      return poplar::INT;
    case SpecType::AUTO:
      break;
  }
  throw poputil::poplibs_error(
      "[popfloat::specTypeToPoplarType] needs a type; got AUTO, which depends on the format. Use "
      "FP32, FP16 or an integer type.");
}

}  // namespace experimental
}  // namespace popfloat
