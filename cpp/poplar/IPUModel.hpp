#pragma once
#include "poplar/Device.hpp"

namespace poplar {

/// Describes a modelled device; fields as in the SDK's model, which users set before createDevice.
struct IPUModel {
  IPUModel() : IPUModel("ipu2") {}
  /// `arch`: "ipu2" is GC200, "ipu21" is C600; or a machine's own name.
  explicit IPUModel(StringRef arch);

  unsigned numIPUs = 1;
  // Those of the machine until the user sets them.
  unsigned tilesPerIPU;
  unsigned numWorkerContexts;
  std::uint64_t bytesPerTile;
  unsigned exchangeBytesPerCycle;
  double tileClockFrequency;
  bool compileIPUCode = false;

  Device createDevice() const;

 private:
  Machine machine_;
};

}  // namespace poplar
