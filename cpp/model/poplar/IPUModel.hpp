#pragma once
#include <vector>

#include "poplar/Device.hpp"
#include "poplar/GlobalExchangeConstraints.hpp"

namespace poplar {

/// Describes a modelled device; fields as in the SDK's model, which users set before createDevice.
struct IPUModel {
  IPUModel() : IPUModel("ipu2") {}
  /// `arch`: "ipu1" is GC2, "ipu2" GC200, "ipu21" C600; or a machine's own name.
  explicit IPUModel(StringRef arch);

  /// How much later tiles far from the sync controller see a sync: the model has one delay for all.
  enum class RelativeSyncDelayType { AUTO, NO_DELAY };
  /// How tiles were modelled to send, in the first SDKs: the model has one way, which multicasts.
  enum class ExchangeType { AGGRESSIVE_MULTICAST };

  unsigned numIPUs = 1;
  // Those of the machine until the user sets them.
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
  unsigned fp16ConvUnitMaxPipelineDepth;  ///< with the next two: weights that a unit holds
  unsigned fp32ConvUnitMaxPipelineDepth;
  unsigned fp16ConvUnitInputLoadElemsPerCycle;
  unsigned fp32ConvUnitInputLoadElemsPerCycle;
  // Taken and not used: the machine's units have no quarters, and load weights by the data path.
  unsigned fp8InFp16OutConvUnitsPerTile;
  unsigned fp8ConvUnitMaxPipelineDepth;
  unsigned fp8ConvUnitInputLoadElemsPerCycle;
  unsigned convUnitCoeffLoadBytesPerCycle;
  /// Taken and not used: the model has the links of its machine.
  std::vector<GlobalExchangeConstraint> globalExchangeConstraints;
  RelativeSyncDelayType relativeSyncDelay = RelativeSyncDelayType::AUTO;  ///< taken, not used
  ExchangeType IPUExchangeType = ExchangeType::AGGRESSIVE_MULTICAST;      ///< taken, not used
  bool compileIPUCode = false;

  /// Halves are rounded as on an IPU, accurate or not; no option changes a modelled device.
  Device createDevice(const OptionFlags& opts = {}, bool accurateHalf = false,
                      unsigned deviceManagerId = 0) const;

 private:
  Machine machine_;
};

}  // namespace poplar
