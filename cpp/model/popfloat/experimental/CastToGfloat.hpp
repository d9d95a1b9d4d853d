#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "popfloat/experimental/GfloatExpr.hpp"
#include "popfloat/experimental/GfloatExprUtil.hpp"
#include "poplar/DebugContext.hpp"
#include "poplar/Engine.hpp"
#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplar/Type.hpp"
#include "poputil/exceptions.hpp"

namespace popfloat {
namespace experimental {

/// Casts between the IPU's floats and a user-defined format: a sign, numExponentBits and
/// numMantissaBits. Results are exact for the rounding mode. Throws poplibs_error for stochastic
/// rounding, for formats without exponents, and for those that FLOAT cannot hold.
class GfloatCast {
 public:
  struct GfloatFormatOptions {
    unsigned numMantissaBits = 10;
    unsigned numExponentBits = 5;
    unsigned numExponentBias = 15;
    bool enableDenorms = true;
    bool enableInfsAndNans = true;

    GfloatFormatOptions() = default;
    GfloatFormatOptions(const poplar::OptionFlags& options) {  // NOLINT: implicit as in the SDK
      parseGfloatFormatOptions(options);
    }
    /// Options are named after the fields; throws poplibs_error for others.
    void parseGfloatFormatOptions(const poplar::OptionFlags& options);
  };

  /// A format, and the types in which its values are computed, held and packed.
  struct FormatConfig {
    FormatConfig() = default;
    /// If the format has more exponents than FLOAT, values are rounded as in the format, but
    /// limited to FLOAT's range.
    FormatConfig(unsigned numMantissaBits, unsigned numExponentBits, int exponentBias,
                 bool enableDenorms, bool enableInfsAndNans,
                 SpecType specCalculationType = SpecType::AUTO);
    FormatConfig(unsigned numMantissaBits, unsigned numExponentBits, int exponentBias,
                 bool enableDenorms, bool enableInfsAndNans, poplar::Type calculationType);
    FormatConfig(GfloatFormatOptions formatOptions, poplar::Type calculationType)
        : FormatConfig(formatOptions.numMantissaBits, formatOptions.numExponentBits,
                       static_cast<int>(formatOptions.numExponentBias), formatOptions.enableDenorms,
                       formatOptions.enableInfsAndNans, calculationType) {}

    poplar::Type getCalculationType() const { return calculation_; }
    poplar::Type getNativeType() const { return native_; }
    poplar::Type getStorageType() const { return storage_; }
    FormatType getFormatType() const { return type_; }
    unsigned getNumMantissaBits() const { return mantissa_; }
    unsigned getNumExponentBits() const { return exponent_; }
    int getExponentBias() const { return bias_; }
    bool isDenormEnabled() const { return denorms_; }
    bool infAndNansEnabled() const { return infs_; }
    bool isPackedFloatFormat() const {
      return type_ != FormatType::QUANTISED_FP16 && type_ != FormatType::QUANTISED_FP32 &&
             type_ != FormatType::IEEE_FP16;
    }
    unsigned getPackedFloatBits() const { return packed_bits_; }
    bool isBlockFloat() const { return exponent_ == 0 || (exponent_ == 1 && infs_); }
    /// Bytes from the lowest: number of mantissa bits, number of exponent bits, bias, and flags: 1
    /// for subnormal values plus 2 for infinities.
    unsigned getPackedFloatParameters() const;
    bool operator==(const FormatConfig& other) const {
      return getPackedFloatParameters() == other.getPackedFloatParameters() &&
             calculation_ == other.calculation_;
    }

   private:
    void check(unsigned most_exponent_bits) const;
    void choose(bool allows_half);
    unsigned mantissa_ = 10;
    unsigned exponent_ = 5;
    int bias_ = 15;
    bool denorms_ = true;
    bool infs_ = true;
    poplar::Type calculation_;
    poplar::Type native_;
    poplar::Type storage_;
    FormatType type_ = FormatType::INVALID_FORMAT;
    unsigned packed_bits_ = 32;
  };

  struct GfloatCastOptions {
    RoundType roundMode = RoundType::INV;
    SRDensityType srNoiseDensity = SRDensityType::INVALID;
    unsigned numSRBits = 24;
    double srNoiseOffset = 0;
    double srNoiseScale = 0;
    double srNoiseMax = 0;
    double srNoiseMin = 0;
    double bernoulliProb = 0;
    bool enableNanooMode = true;

    GfloatCastOptions() = default;
    GfloatCastOptions(const poplar::OptionFlags& options) {  // NOLINT: implicit as in the SDK
      parseGfloatCastOptions(options);
    }
    void parseGfloatCastOptions(const poplar::OptionFlags& options);
  };

  /// How a cast rounds. Settings of noise are only stored: casts with stochastic rounding throw.
  struct RoundConfig {
    RoundConfig() = default;
    RoundConfig(RoundType roundMode, unsigned numSRBits, poplar::Type calculationType,
                SRDensityType srNoiseDensity = SRDensityType::INVALID, float srNoiseOffset = 0,
                float srNoiseScale = 0, float srNoiseMax = 0, float srNoiseMin = 0,
                float bernoulliProb = 0);
    RoundConfig(GfloatCastOptions castOptions, poplar::Type calculationType);

    RoundType getRoundMode() const { return options_.roundMode; }
    unsigned getNumSRBits() const { return options_.numSRBits; }
    SRDensityType getSRNoiseDensity() const { return options_.srNoiseDensity; }
    float getBernoulliProbability() const { return static_cast<float>(options_.bernoulliProb); }
    float getSRNoiseOffset() const { return static_cast<float>(options_.srNoiseOffset); }
    float getSRNoiseScale() const { return static_cast<float>(options_.srNoiseScale); }
    float getSRNoiseMax() const { return static_cast<float>(options_.srNoiseMax); }
    float getSRNoiseMin() const { return static_cast<float>(options_.srNoiseMin); }

   private:
    GfloatCastOptions options_;
  };

  /// One direction of a cast.
  struct CastConfig {
    CastConfig() = default;
    static CastConfig createCastNativeToGF(FormatType formatType, poplar::Type calculationType,
                                           poplar::Type storageType, RoundConfig roundCfg,
                                           bool enableNanooMode);
    static CastConfig createCastGFToNative(FormatType formatType, poplar::Type calculationType,
                                           poplar::Type storageType);
    RoundType getRoundMode() const { return round_.getRoundMode(); }
    unsigned getNumSRBits() const { return round_.getNumSRBits(); }
    SRDensityType getSRNoiseDensity() const { return round_.getSRNoiseDensity(); }
    bool isNanooModeEnabled() const { return nanoo_; }
    poplar::Type getCalculationType() const { return calculation_; }
    poplar::Type getStorageType() const { return storage_; }
    FormatType getFormatType() const { return type_; }
    bool inPlaceOp(poplar::Type inType) const { return inType == storage_; }
    /// Whether values are held in HALF or FLOAT, not packed.
    bool getStoreAsNative() const { return storage_ == poplar::HALF || storage_ == poplar::FLOAT; }

   private:
    FormatType type_ = FormatType::INVALID_FORMAT;
    poplar::Type calculation_;
    poplar::Type storage_;
    RoundConfig round_;
    bool nanoo_ = false;
  };

  /// `GFType` is the type that holds the format's values, and `NativeType` the type that they are
  /// cast back to; AUTO is the format's own choice.
  GfloatCast(const FormatConfig& formatCfg, const RoundConfig& roundCfg, bool enableNanooMode,
             const SpecType& GFType = SpecType::AUTO, const SpecType& NativeType = SpecType::AUTO);
  GfloatCast(const GfloatFormatOptions& formatOptions, const GfloatCastOptions& castOptions,
             poplar::Type calculationType, const SpecType& GFType = SpecType::AUTO,
             const SpecType& NativeType = SpecType::AUTO);

  /// The format (getPackedFloatParameters) as a constant, which the static casts below take.
  static poplar::Tensor createCastOpParamsTensor(poplar::Graph& graph, const poplar::ComputeSet& cs,
                                                 poplar::Type calculationType, unsigned gfPacked);
  static poplar::Tensor createCastOpParamsTensor(poplar::Graph& graph,
                                                 poplar::program::Sequence& prog,
                                                 poplar::Type calculationType, unsigned gfStruct,
                                                 const poplar::DebugContext& debugContext = {});
  /// `gfPacked` must be such a constant, and is returned.
  static poplar::Tensor createCastOpParamsTensor(poplar::Graph& graph, const poplar::ComputeSet& cs,
                                                 poplar::Type calculationType,
                                                 poplar::Tensor gfPacked);
  static poplar::Tensor createCastOpParamsTensor(poplar::Graph& graph,
                                                 poplar::program::Sequence& prog,
                                                 poplar::Type calculationType,
                                                 poplar::Tensor gfStruct,
                                                 const poplar::DebugContext& debugContext = {});
  void createCastOpParamsTensor(poplar::Graph& graph, poplar::program::Sequence& prog,
                                const poplar::DebugContext& debugContext = {});
  void createCastOpParamsTensor(poplar::Graph& graph, const poplar::ComputeSet& cs);

  /// Values that are too large become NaN with enableNanooMode, and the largest value otherwise;
  /// infinities and NaN stay. `param` must be a constant.
  static poplar::Tensor castNativeToGfloat(poplar::Graph& graph, poplar::Tensor input,
                                           const poplar::Tensor& param,
                                           poplar::program::Sequence& prog,
                                           const CastConfig& gfCastCfg,
                                           const poplar::DebugContext& debugContext = {});
  static poplar::Tensor castNativeToGfloat(poplar::Graph& graph, poplar::Tensor input,
                                           const poplar::Tensor& param,
                                           const poplar::ComputeSet& cs,
                                           const CastConfig& gfCastCfg);
  poplar::Tensor castNativeToGfloat(poplar::Graph& graph, poplar::Tensor input,
                                    poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext = {});
  static void castNativeToGfloatInPlace(poplar::Graph& graph, poplar::Tensor input,
                                        const poplar::Tensor& param,
                                        poplar::program::Sequence& prog,
                                        const CastConfig& gfCastCfg,
                                        const poplar::DebugContext& debugContext = {});
  static void castNativeToGfloatInPlace(poplar::Graph& graph, poplar::Tensor input,
                                        const poplar::Tensor& param, const poplar::ComputeSet& cs,
                                        const CastConfig& gfCastCfg);
  void castNativeToGfloatInPlace(poplar::Graph& graph, poplar::Tensor input,
                                 const poplar::ComputeSet& cs);
  void castNativeToGfloatInPlace(poplar::Graph& graph, poplar::Tensor input,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext = {});
  static poplar::Tensor castGfloatToNative(poplar::Graph& graph, poplar::Tensor input,
                                           const poplar::Tensor& param,
                                           poplar::program::Sequence& prog,
                                           const CastConfig& gfCastCfg,
                                           const poplar::DebugContext& debugContext = {});
  static poplar::Tensor castGfloatToNative(poplar::Graph& graph, poplar::Tensor input,
                                           const poplar::Tensor& param,
                                           const poplar::ComputeSet& cs,
                                           const CastConfig& gfCastCfg);
  poplar::Tensor castGfloatToNative(poplar::Graph& graph, poplar::Tensor input,
                                    poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext = {});
  poplar::Tensor castGfloatToNative(poplar::Graph& graph, poplar::Tensor input,
                                    const poplar::ComputeSet& cs);

  poplar::Type getGFStorageType() const { return to_gf_.getStorageType(); }
  poplar::Type getCalculationType() const { return to_gf_.getCalculationType(); }
  poplar::Type getNativeStorageType() const { return to_native_.getStorageType(); }
  FormatConfig getFormatConfig() const { return format_; }
  CastConfig getNativeToGFConfig() const { return to_gf_; }
  CastConfig getGFToNativeConfig() const { return to_native_; }
  bool getStoreAsNative() const { return to_gf_.getStoreAsNative(); }
  poplar::Tensor getCastOpParams() const { return params_; }
  bool isCastOpParamSet() const { return params_.valid(); }
  /// Takes ownership of `gfParams`.
  void setGfloatCastParameters(poplar::Tensor* gfParams) {
    params_ = *std::unique_ptr<poplar::Tensor>(gfParams);
  }
  bool isNanooModeEnabled() const { return to_gf_.isNanooModeEnabled(); }
  RoundType getRoundMode() const { return to_gf_.getRoundMode(); }
  bool inPlaceOp(poplar::Type outType) const { return to_gf_.inPlaceOp(outType); }

 private:
  const poplar::Tensor& params(const char* where) const;
  FormatConfig format_;
  CastConfig to_gf_;
  CastConfig to_native_;
  poplar::Tensor params_;
};

}  // namespace experimental
}  // namespace popfloat
