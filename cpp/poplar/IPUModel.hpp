#pragma once
#include "poplar/Device.hpp"

namespace poplar {

/// Describes a modelled device; fields as in the SDK's model, which users set before createDevice.
struct IPUModel {
  IPUModel() : IPUModel("ipu2") {}
  /// `arch`: "ipu1" is refused; "ipu2" is GC200, "ipu21" is C600; "bow" is GC200 at Bow's clock.
  explicit IPUModel(StringRef arch);

  unsigned numIPUs = 1;
  unsigned tilesPerIPU = 1472;
  unsigned numWorkerContexts = 6;
  std::uint64_t bytesPerTile = 638976;
  unsigned exchangeBytesPerCycle = 4;
  double tileClockFrequency = 1.33e9;
  bool compileIPUCode = false;

  Device createDevice() const;

 private:
  Machine machine_;
};

}  // namespace poplar
