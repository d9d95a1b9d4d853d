#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/Machine.hpp"
#include "poplar/StringRef.hpp"
#include "poplar/Type.hpp"

namespace poplar {

using ipujax::engine::Machine;
using ipujax::engine::TargetType;

/// "gc200" (default), "bow" or "c600"; throws poplar_error for another name.
Machine machineByName(const std::string& name);

/// What the graph is compiled for.
class Target {
 public:
  Target();
  Target(Machine machine, unsigned numIPUs, TargetType type);

  static Target createIPUTarget(unsigned numIPUs, StringRef systemType);
  static Target createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef systemType);

  TargetType getTargetType() const { return machine_->target; }
  StringRef getTargetArchString() const { return machine_->name; }
  unsigned getNumIPUs() const { return machine_->num_ipus; }
  unsigned getTilesPerIPU() const { return machine_->tiles_per_ipu; }
  unsigned getNumTiles() const { return machine_->numTiles(); }
  unsigned getNumWorkerContexts() const { return machine_->worker_contexts; }
  std::uint64_t getBytesPerTile() const { return machine_->bytes_per_tile; }
  std::uint64_t getMemoryBytes() const { return getBytesPerTile() * getNumTiles(); }
  unsigned getExchangeBytesPerCycle() const { return machine_->exchange_bytes_per_cycle; }
  unsigned getMemcpyBytesPerCycle() const { return machine_->memcpy_bytes_per_cycle; }
  unsigned getDataPathWidth() const { return machine_->data_path_width; }
  unsigned getVectorWidth(const Type& type) const;
  unsigned getFloatVectorWidth() const { return getVectorWidth(FLOAT); }
  unsigned getHalfVectorWidth() const { return getVectorWidth(HALF); }
  unsigned getWeightsPerConvUnit(bool floatActivations) const {
    return floatActivations ? machine_->weights_per_unit_fp32 : machine_->weights_per_unit_fp16;
  }
  unsigned getFp16InFp16OutConvUnitsPerTile() const { return machine_->fp16_in_fp16_out_units; }
  unsigned getFp16InFp32OutConvUnitsPerTile() const { return machine_->fp16_in_fp32_out_units; }
  unsigned getFp32InFp32OutConvUnitsPerTile() const { return machine_->fp32_units; }
  unsigned getTilesPerSharedExchangeBus() const { return machine_->tiles_per_exchange_bus; }
  unsigned getMaxIPUSyncDelay() const { return machine_->sync_cycles; }
  unsigned getGlobalSyncCycles() const { return machine_->global_sync_cycles; }
  double getTileClockFrequency() const { return machine_->clock_hz; }
  /// For the library: the same machine with another number of IPUs and tiles.
  Target withTiles(unsigned num_ipus, unsigned tiles_per_ipu) const;
  operator const Machine&() const { return *machine_; }  // NOLINT: what the engine plans with
  std::size_t getTypeSize(const Type& type) const { return engineSize(type); }
  std::size_t getAtomicStoreGranularity() const { return 4; }

 private:
  static std::size_t engineSize(const Type& type);
  std::shared_ptr<const Machine> machine_;
};

}  // namespace poplar
