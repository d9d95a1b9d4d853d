#pragma once
#include <vector>

#include "poplar/Device.hpp"
#include "poplar/GlobalExchangeConstraints.hpp"

namespace poplar {

/// Describes a modelled device; the fields are as in the SDK, and are set before createDevice.
struct IPUModel {
  IPUModel() : IPUModel("ipu2") {}
  /// `arch`: "ipu1" is GC2, "ipu2" GC200, "ipu21" C600; or a machine's name.
  explicit IPUModel(StringRef arch);

  /// How much later distant tiles see a sync; the model uses one delay for all.
  enum class RelativeSyncDelayType { AUTO, NO_DELAY };
  /// How the first SDKs modelled sends between tiles; this model always multicasts.
  enum class ExchangeType { AGGRESSIVE_MULTICAST };

  unsigned numIPUs = 1;
  // These default to the values of the machine.
  unsigned tilesPerIPU;
  unsigned numWorkerContexts;
  unsigned memoryBytesPerTile;
  unsigned exchangeBytesPerCycle;
  unsigned memcpyBytesPerCycle;
  unsigned dataPathWidth;
  unsigned minIPUSyncDelay;
  unsigned globalSyncCycles;
  double tileClockFrequency;
  unsigned fp16InFp16OutConvUnitsPerTile;
  unsigned fp16InFp32OutConvUnitsPerTile;
  unsigned fp32InFp32OutConvUnitsPerTile;
  unsigned fp16ConvUnitMaxPipelineDepth;  ///< with the next three: weights per unit
  unsigned fp32ConvUnitMaxPipelineDepth;
  unsigned fp16ConvUnitInputLoadElemsPerCycle;
  unsigned fp32ConvUnitInputLoadElemsPerCycle;
  // Accepted but unused: the machine's units have no quarters, and load weights by the data path.
  unsigned fp8InFp16OutConvUnitsPerTile;
  unsigned fp8ConvUnitMaxPipelineDepth;
  unsigned fp8ConvUnitInputLoadElemsPerCycle;
  unsigned convUnitCoeffLoadBytesPerCycle;
  /// Accepted but unused: the model uses the links of its machine.
  std::vector<GlobalExchangeConstraint> globalExchangeConstraints;
  RelativeSyncDelayType relativeSyncDelay = RelativeSyncDelayType::AUTO;  ///< taken, not used
  ExchangeType IPUExchangeType = ExchangeType::AGGRESSIVE_MULTICAST;      ///< taken, not used
  bool compileIPUCode = false;

  /// Rounds halves as an IPU does, whatever `accurateHalf` is; `opts` have no effect.
  Device createDevice(const OptionFlags& opts = {}, bool accurateHalf = false,
                      unsigned deviceManagerId = 0) const;

 private:
  Machine machine_;
};

}  // namespace poplar
