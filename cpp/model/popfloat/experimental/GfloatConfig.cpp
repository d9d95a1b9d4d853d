#include <array>
#include <cstdlib>
#include <utility>

#include "popfloat/experimental/CastToGfloat.hpp"

// Configuration of a cast: formats, rounding, options.
namespace popfloat {
namespace experimental {
namespace {

using poputil::poplibs_error;

double numberOf(const std::string& option, const std::string& value) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (!value.empty() && *end == '\0') return number;
  throw poplibs_error("[GfloatCast] needs a number for '" + option + "'; got '" + value +
                      "'. Write one.");
}

bool truthOf(const std::string& option, const std::string& value) {
  if (value == "true" || value == "false") return value == "true";
  throw poplibs_error("[GfloatCast] needs true or false for '" + option + "'; got '" + value +
                      "'. Write one of them.");
}

[[noreturn]] void refuseOption(const std::string& option) {
  throw poplibs_error("[GfloatCast] needs an option that it has; got '" + option +
                      "'. Use the name of a field.");
}

/// The enumerator that `nameOf` gives the name `value`.
template <class Enum>
Enum enumeratorOf(const std::string& option, const std::string& value, Enum last,
                  std::string (*nameOf)(Enum)) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (nameOf(static_cast<Enum>(i)) == value) return static_cast<Enum>(i);
  }
  throw poplibs_error("[GfloatCast] needs the name of an enumerator for '" + option + "'; got '" +
                      value + "'. Write it as in GfloatExpr.hpp.");
}

constexpr unsigned kHalfMantissa = 10;
constexpr unsigned kHalfExponent = 5;
constexpr unsigned kFloatMantissa = 23;
constexpr unsigned kFloatExponent = 8;

}  // namespace

void GfloatCast::GfloatFormatOptions::parseGfloatFormatOptions(const poplar::OptionFlags& options) {
  for (const auto& [name, value] : options) {
    if (name == "enableDenorms") {
      enableDenorms = truthOf(name, value);
    } else if (name == "enableInfsAndNans") {
      enableInfsAndNans = truthOf(name, value);
    } else if (name == "numMantissaBits") {
      numMantissaBits = static_cast<unsigned>(numberOf(name, value));
    } else if (name == "numExponentBits") {
      numExponentBits = static_cast<unsigned>(numberOf(name, value));
    } else if (name == "numExponentBias") {
      numExponentBias = static_cast<unsigned>(numberOf(name, value));
    } else {
      refuseOption(name);
    }
  }
}

void GfloatCast::GfloatCastOptions::parseGfloatCastOptions(const poplar::OptionFlags& options) {
  const std::array<std::pair<const char*, double*>, 5> numbers{{{"srNoiseOffset", &srNoiseOffset},
                                                                {"srNoiseScale", &srNoiseScale},
                                                                {"srNoiseMax", &srNoiseMax},
                                                                {"srNoiseMin", &srNoiseMin},
                                                                {"bernoulliProb", &bernoulliProb}}};
  for (const auto& [name, value] : options) {
    bool is_number = false;
    for (const auto& [field, number] : numbers) {
      if (name != field) continue;
      *number = numberOf(name, value);
      is_number = true;
    }
    if (is_number) continue;
    if (name == "enableNanooMode") {
      enableNanooMode = truthOf(name, value);
    } else if (name == "numSRBits") {
      numSRBits = static_cast<unsigned>(numberOf(name, value));
    } else if (name == "roundMode") {
      roundMode = enumeratorOf(name, value, RoundType::SX, roundTypeToString);
    } else if (name == "srNoiseDensity") {
      srNoiseDensity =
          enumeratorOf(name, value, SRDensityType::TRUNCATED_LOGIT_NORMAL, srDensityTypeToString);
    } else {
      refuseOption(name);
    }
  }
}

void GfloatCast::FormatConfig::choose(bool allows_half) {
  const unsigned bits = 1 + mantissa_ + exponent_;
  const bool is_half = mantissa_ == kHalfMantissa && exponent_ == kHalfExponent;
  if (allows_half && mantissa_ <= kHalfMantissa && exponent_ <= kHalfExponent && !is_half) {
    native_ = poplar::HALF;
    storage_ = bits <= 8 ? poplar::CHAR : poplar::HALF;
    packed_bits_ = bits <= 8 ? 8 : 16;
    type_ = bits > 8                    ? FormatType::QUANTISED_FP16
            : exponent_ < kHalfExponent ? FormatType::MIN_NORM_ALIGN_GF8
            : infs_                     ? FormatType::ONE_FIVE_TWO_GF8
                                        : FormatType::MAX_NORM_ALIGN_GF8;
    return;
  }
  native_ = storage_ = poplar::FLOAT;
  packed_bits_ = 32;
  type_ = FormatType::QUANTISED_FP32;
  if (is_half && infs_) {
    type_ = FormatType::IEEE_FP16;
    native_ = storage_ = poplar::HALF;
    packed_bits_ = 16;
  } else if (bits <= 8) {
    type_ = FormatType::ENABLE_DENORM_GF16;
    if (exponent_ <= kHalfExponent) native_ = poplar::HALF;
    storage_ = poplar::CHAR;
    packed_bits_ = 8;
  } else if (bits <= 16) {
    type_ = exponent_ == kFloatExponent ? FormatType::BFLOAT16
            : denorms_                  ? FormatType::ENABLE_DENORM_GF16
                                        : FormatType::NO_DENORM_GF16;
    storage_ = poplar::SHORT;
    packed_bits_ = 16;
  }
}

GfloatCast::FormatConfig::FormatConfig(unsigned numMantissaBits, unsigned numExponentBits,
                                       int exponentBias, bool enableDenorms, bool enableInfsAndNans,
                                       poplar::Type calculationType)
    : mantissa_(numMantissaBits),
      exponent_(numExponentBits),
      bias_(exponentBias),
      denorms_(enableDenorms),
      infs_(enableInfsAndNans && numExponentBits > 0),
      calculation_(calculationType) {
  check(kFloatExponent);
  choose(true);
}

void GfloatCast::FormatConfig::check(unsigned most_exponent_bits) const {
  if (mantissa_ <= kFloatMantissa && exponent_ <= most_exponent_bits && bias_ >= -128 &&
      bias_ <= 127)
    return;
  throw poplibs_error("[GfloatCast::FormatConfig] needs at most 23 bits of the mantissa, " +
                      std::to_string(most_exponent_bits) +
                      " of the exponent and a bias of 8 bits; got " + std::to_string(mantissa_) +
                      ", " + std::to_string(exponent_) + " and " + std::to_string(bias_) +
                      ". Use a format that FLOAT holds.");
}

GfloatCast::FormatConfig::FormatConfig(unsigned numMantissaBits, unsigned numExponentBits,
                                       int exponentBias, bool enableDenorms, bool enableInfsAndNans,
                                       SpecType specCalculationType)
    : mantissa_(numMantissaBits),
      exponent_(numExponentBits),
      bias_(exponentBias),
      denorms_(enableDenorms),
      infs_(enableInfsAndNans && numExponentBits > 0) {
  constexpr unsigned kMostExponentBits = 15;  // PopLibs has no limit here
  check(kMostExponentBits);
  const bool is_half = mantissa_ == kHalfMantissa && exponent_ == kHalfExponent;
  const bool fits_half = mantissa_ <= kHalfMantissa && exponent_ <= kHalfExponent && !is_half;
  if (specCalculationType == SpecType::FP16 && !fits_half)
    throw poplibs_error(
        "[GfloatCast::FormatConfig] needs a format smaller than HALF to compute in "
        "HALF; got " +
        std::to_string(mantissa_) + " bits of the mantissa and " + std::to_string(exponent_) +
        " of the exponent. Compute in FP32.");
  const bool in_half = fits_half && specCalculationType != SpecType::FP32;
  calculation_ = in_half ? poplar::HALF : poplar::FLOAT;
  choose(in_half);
}

unsigned GfloatCast::FormatConfig::getPackedFloatParameters() const {
  return mantissa_ | exponent_ << 8 | (static_cast<unsigned>(bias_) & 0xffu) << 16 |
         (unsigned{denorms_} | unsigned{infs_} << 1) << 24;
}

GfloatCast::RoundConfig::RoundConfig(RoundType roundMode, unsigned numSRBits, poplar::Type,
                                     SRDensityType srNoiseDensity, float srNoiseOffset,
                                     float srNoiseScale, float srNoiseMax, float srNoiseMin,
                                     float bernoulliProb) {
  options_.roundMode = roundMode;
  options_.numSRBits = numSRBits;
  options_.srNoiseDensity = srNoiseDensity;
  options_.srNoiseOffset = srNoiseOffset;
  options_.srNoiseScale = srNoiseScale;
  options_.srNoiseMax = srNoiseMax;
  options_.srNoiseMin = srNoiseMin;
  options_.bernoulliProb = bernoulliProb;
}

GfloatCast::RoundConfig::RoundConfig(GfloatCastOptions castOptions, poplar::Type)
    : options_(castOptions) {}

GfloatCast::CastConfig GfloatCast::CastConfig::createCastNativeToGF(FormatType formatType,
                                                                    poplar::Type calculationType,
                                                                    poplar::Type storageType,
                                                                    RoundConfig roundCfg,
                                                                    bool enableNanooMode) {
  if (formatType == FormatType::INVALID_FORMAT)
    throw poplibs_error(
        "[GfloatCast::CastConfig] needs a format; got INVALID_FORMAT. Use a FormatConfig's.");
  CastConfig config;
  config.type_ = formatType;
  config.calculation_ = calculationType;
  config.storage_ = storageType;
  config.round_ = roundCfg;
  config.nanoo_ = enableNanooMode;
  return config;
}

GfloatCast::CastConfig GfloatCast::CastConfig::createCastGFToNative(FormatType formatType,
                                                                    poplar::Type calculationType,
                                                                    poplar::Type storageType) {
  return createCastNativeToGF(formatType, calculationType, storageType, {}, false);
}

}  // namespace experimental
}  // namespace popfloat
