#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/Machine.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/StringRef.hpp"
#include "poplar/TargetType.hpp"
#include "poplar/Type.hpp"

namespace poplar {

using ipujax::engine::Machine;

/// What the graph is compiled for.
class Target {
 public:
  Target();
  explicit Target(ipujax::engine::System system);

  /// `systemType`: a machine's name or architecture. No option changes a modelled target.
  static Target createIPUTarget(unsigned numIPUs, StringRef systemType,
                                const OptionFlags& opts = {});
  static Target createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef systemType,
                                const OptionFlags& opts = {});
  /// `numTiles` tiles of one worker each. Halves are rounded as on an IPU, accurate or not.
  static Target createCPUTarget(bool accurateHalf = false, unsigned numTiles = 1);

  TargetType getTargetType() const { return system_->type; }
  StringRef getTargetArchString() const { return machine().arch; }
  StringRef getTargetSystemString() const { return machine().name; }
  unsigned getNumIPUs() const { return system_->num_ipus; }
  unsigned getTilesPerIPU() const { return machine().tiles_per_ipu; }
  unsigned getNumTiles() const { return system_->numTiles(); }
  unsigned getNumWorkerContexts() const { return machine().worker_contexts; }
  unsigned getNumStrideBits() const { return 10; }
  std::uint64_t getBytesPerTile() const { return machine().bytes_per_tile; }
  std::uint64_t getMemoryBytes() const { return getBytesPerTile() * getNumTiles(); }
  unsigned getExchangeBytesPerCycle() const { return machine().exchange_bytes_per_cycle; }
  unsigned getMemcpyBytesPerCycle() const { return machine().memcpy_bytes_per_cycle; }
  unsigned getDataPathWidth() const { return machine().data_path_width; }
  unsigned getVectorWidth(const Type& type) const;
  unsigned getFloatVectorWidth() const { return getVectorWidth(FLOAT); }
  unsigned getHalfVectorWidth() const { return getVectorWidth(HALF); }
  unsigned getWeightsPerConvUnit(bool floatActivations) const {
    return floatActivations ? machine().weights_per_unit_fp32 : machine().weights_per_unit_fp16;
  }
  unsigned getFp16InFp16OutConvUnitsPerTile() const { return machine().fp16_in_fp16_out_units; }
  unsigned getFp16InFp32OutConvUnitsPerTile() const { return machine().fp16_in_fp32_out_units; }
  unsigned getFp32InFp32OutConvUnitsPerTile() const { return machine().fp32_units; }
  unsigned getTilesPerSharedExchangeBus() const { return machine().tiles_per_exchange_bus; }
  unsigned getMaxIPUSyncDelay() const { return machine().sync_cycles; }
  unsigned getGlobalSyncCycles() const { return machine().global_sync_cycles; }
  double getTileClockFrequency() const { return machine().clock_hz; }
  /// For the library: the machine's figures, and the same machine with other counts.
  const Machine& machine() const { return system_->machine; }
  operator const ipujax::engine::System&() const { return *system_; }  // NOLINT: what plans read
  Target withTiles(unsigned num_ipus, unsigned tiles_per_ipu) const;
  std::size_t getTypeSize(const Type& type) const {
    return type.requiresMetadata() ? 1 : sizeOf(type.element());
  }
  /// Turns of a hardware loop: its counter has 12 bits.
  unsigned getRptCountMax() const { return 4095; }
  /// Where each memory element of a tile begins, the pairs of interleaved memory as one; only 0
  /// where the target has none.
  std::vector<std::size_t> getMemoryElementOffsets() const;
  /// The first of these that is interleaved; as many as there are if none is.
  std::size_t getInterleavedMemoryElementIndex() const;
  std::size_t getAtomicStoreGranularity() const { return 4; }

  friend bool operator==(const Target& a, const Target& b) { return a.isSame(b); }
  friend bool operator!=(const Target& a, const Target& b) { return !a.isSame(b); }

 private:
  bool isSame(const Target& other) const;
  std::shared_ptr<const ipujax::engine::System> system_;
};

/// Arrays of floats to the bits of halves, rounded to nearest even, and back; `n` elements.
void copyFloatToDeviceHalf(const Target& target, const float* src, void* dst, std::size_t n);
void copyDoubleToDeviceHalf(const Target& target, const double* src, void* dst, std::size_t n);
void copyDeviceHalfToFloat(const Target& target, const void* src, float* dst, std::size_t n);
void copyDeviceHalfToDouble(const Target& target, const void* src, double* dst, std::size_t n);

}  // namespace poplar
