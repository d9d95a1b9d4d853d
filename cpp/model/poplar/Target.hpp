#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/Machine.hpp"
#include "poplar/GlobalExchangeConstraints.hpp"
#include "poplar/IpuLinkConfiguration.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/StringRef.hpp"
#include "poplar/TargetType.hpp"
#include "poplar/Type.hpp"

namespace poplar {

using ipujax::engine::Machine;

/// The machine that a graph is compiled for.
class Target {
 public:
  Target();
  explicit Target(ipujax::engine::System system);
  /// Reads what `serialize` wrote; throws poplar_error for anything else.
  explicit Target(std::istream& in);
  /// Copies in place of moves, so that a target stays valid after std::move.
  Target(const Target&) = default;
  Target& operator=(const Target&) = default;
  void serialize(std::ostream& out) const;
  std::size_t hash() const;

  /// `systemType` is a machine's name or architecture. `opts` have no effect on a modelled target.
  static Target createIPUTarget(unsigned numIPUs, StringRef systemType,
                                const OptionFlags& opts = {});
  static Target createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef systemType,
                                const OptionFlags& opts = {});
  /// `system` is a machine, for one IPU, or "<machine>:<n>" for n IPUs.
  static Target createIPUTarget(StringRef system, const OptionFlags& opts = {});
  /// `numIPUs` IPUs of one tile with one worker. Halves always round as on an IPU.
  static Target createCPUTarget(bool accurateHalf = false, unsigned numIPUs = 1);

  TargetType getTargetType() const { return system_->type; }
  /// Options for createIPUTarget; always empty.
  OptionFlags getTargetOptions() const { return {}; }
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
  unsigned getQuarterVectorWidth() const { return getVectorWidth(QUARTER); }
  unsigned getWeightsPerConvUnit(bool floatActivations) const {
    return floatActivations ? machine().weights_per_unit_fp32 : machine().weights_per_unit_fp16;
  }
  /// For FLOAT, HALF or QUARTER; a unit holds twice as many weights of QUARTER as of HALF.
  unsigned getWeightsPerConvUnit(const Type& type) const;
  unsigned getNumConvUnits(bool floatActivations, bool floatPartial) const;
  unsigned getNumConvUnits(const Type& activationsType, const Type& partialsType) const {
    return getNumConvUnits(activationsType == FLOAT, partialsType == FLOAT);
  }
  /// Input elements (and bytes of weights) that a tile's convolution units load per cycle.
  unsigned getConvUnitInputLoadElemsPerCycle(bool floatActivations) const {
    return getDataPathWidth() / (floatActivations ? 32 : 16);
  }
  unsigned getConvUnitInputLoadElemsPerCycle(const Type& type) const {
    return getDataPathWidth() / (8 * static_cast<unsigned>(getTypeSize(type)));
  }
  unsigned getFp8ConvUnitInputLoadElemsPerCycle() const { return getDataPathWidth() / 8; }
  unsigned getFp16ConvUnitInputLoadElemsPerCycle() const { return getDataPathWidth() / 16; }
  unsigned getFp32ConvUnitInputLoadElemsPerCycle() const { return getDataPathWidth() / 32; }
  /// Pipeline stages of a convolution unit, by its partials: each stage takes the inputs of one
  /// cycle, so a unit holds weights for all stages. Source: PopLibs, convolution planning.
  unsigned getConvUnitMaxPipelineDepth(const Type& type) const {
    return getWeightsPerConvUnit(type) / getConvUnitInputLoadElemsPerCycle(type);
  }
  unsigned getFp8ConvUnitMaxPipelineDepth() const { return getConvUnitMaxPipelineDepth(QUARTER); }
  unsigned getFp16ConvUnitMaxPipelineDepth() const { return getConvUnitMaxPipelineDepth(HALF); }
  unsigned getFp32ConvUnitMaxPipelineDepth() const { return getConvUnitMaxPipelineDepth(FLOAT); }
  unsigned getFp8InFp16OutConvUnitsPerTile() const { return getFp16InFp16OutConvUnitsPerTile(); }
  unsigned getConvUnitCoeffLoadBytesPerCycle() const { return getDataPathWidth() / 8; }
  unsigned getFp16InFp16OutConvUnitsPerTile() const { return machine().fp16_in_fp16_out_units; }
  unsigned getFp16InFp32OutConvUnitsPerTile() const { return machine().fp16_in_fp32_out_units; }
  unsigned getFp32InFp32OutConvUnitsPerTile() const { return machine().fp32_units; }
  unsigned getTilesPerSharedExchangeBus() const { return machine().tiles_per_exchange_bus; }
  bool supportsExchangeBusSharing() const { return getTilesPerSharedExchangeBus() > 1; }
  unsigned getMinIPUSyncDelay() const { return machine().sync_cycles; }
  unsigned getMaxIPUSyncDelay() const { return machine().sync_cycles; }
  unsigned getGlobalSyncCycles() const { return machine().global_sync_cycles; }
  double getTileClockFrequency() const { return machine().clock_hz; }
  /// For the library: the machine's parameters, and the same machine with other counts.
  const Machine& machine() const { return system_->machine; }
  operator const ipujax::engine::System&() const { return *system_; }  // NOLINT: what plans read
  Target withTiles(unsigned num_ipus, unsigned tiles_per_ipu) const;
  std::size_t getTypeSize(const Type& type) const {
    return type.requiresMetadata() ? 1 : sizeOf(type.element());
  }
  /// Largest iteration count of a hardware loop, whose counter has 12 bits.
  unsigned getRptCountMax() const { return 4095; }
  /// Byte offset of each memory element of a tile, with interleaved pairs as one; only 0 if the
  /// target has no elements.
  std::vector<std::size_t> getMemoryElementOffsets() const;
  /// Index of the first interleaved element; the number of elements if none is interleaved.
  std::size_t getInterleavedMemoryElementIndex() const;
  std::size_t getAtomicStoreGranularity() const { return 4; }

  std::size_t getTypeAlignment(const Type& type) const { return getTypeSize(type); }
  /// Largest and lowest finite value of a type. Throw poplar_error if the host type T cannot hold
  /// it exactly.
  template <class T>
  T getTypeLimitsMaxAs(const Type& t) const {
    return limitAs<T>(t, true);
  }
  template <class T>
  T getTypeLimitsLowestAs(const Type& t) const {
    return limitAs<T>(t, false);
  }
  /// Whether IPUs reach the host through an IPU-Gateway, as on the modelled machines.
  bool getGatewayMode() const { return true; }
  unsigned getInstanceSize() const { return getNumIPUs(); }
  unsigned getIpuLinkDomainSize() const { return machine().ipus_per_rack; }
  IpuLinkConfiguration getIpuLinkConfiguration() const { return IpuLinkConfiguration::Default; }
  IpuLinkTopology getIpuLinkTopology() const { return IpuLinkTopology::Mesh; }
  /// Bandwidth and flows of each link between IPUs; empty for one IPU.
  std::vector<GlobalExchangeConstraint> getGlobalExchangeConstraints() const;
  /// A target with fewer IPUs or tiles; throws poplar_error if it would be larger than this one.
  Target createVirtualTarget(unsigned numIPUs, unsigned tilesPerIPU) const;
  /// How a tile reaches the host. Always throw poplar_error: the model has no exchange blocks.
  unsigned getNumTilesPerXBContext() const;
  unsigned getNumContextsPerXB() const;
  unsigned getTileHostExchangeXB(unsigned tile) const;
  unsigned getTileHostExchangeContext(unsigned tile) const;
  unsigned getTileHostExchangeContextPosition(unsigned tile) const;
  /// Register numbers and bits of a Mk2 tile.
  unsigned makeFpIctlValue(bool inv, bool div0, bool oflo, bool esr, bool nanoo) const;
  unsigned getFpIctlRegIndex() const;
  unsigned getDbgDataRegIndex() const;

  friend bool operator==(const Target& a, const Target& b) { return a.isSame(b); }
  friend bool operator!=(const Target& a, const Target& b) { return !a.isSame(b); }
  friend bool operator<(const Target& a, const Target& b) { return a.text() < b.text(); }

 private:
  bool isSame(const Target& other) const;
  std::string text() const;  ///< what `serialize` writes
  template <class T>
  T limitAs(const Type& t, bool largest) const {
    const auto limits = limitsOf(t);
    if (!limits.is_integral || std::is_floating_point_v<T>) {
      const double limit = largest ? limits.max : limits.lowest;
      if (static_cast<double>(static_cast<T>(limit)) == limit && std::is_floating_point_v<T>)
        return static_cast<T>(limit);
    } else if (largest &&
               limits.max_bits <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())) {
      return static_cast<T>(limits.max_bits);
    } else if (!largest && (limits.lowest_bits >=
                            static_cast<std::int64_t>(std::numeric_limits<T>::lowest()))) {
      return static_cast<T>(limits.lowest_bits);
    }
    throwLimit(t);
  }
  struct Limits {
    bool is_integral;
    double max;
    double lowest;
    std::uint64_t max_bits;
    std::int64_t lowest_bits;
  };
  static Limits limitsOf(const Type& t);
  [[noreturn]] static void throwLimit(const Type& t);
  std::shared_ptr<const ipujax::engine::System> system_;
};

/// Converts `n` floating-point values to the bits of halves, rounded to nearest even, and back.
void copyFloatToDeviceHalf(const Target& target, const float* src, void* dst, std::size_t n);
void copyDoubleToDeviceHalf(const Target& target, const double* src, void* dst, std::size_t n);
void copyDeviceHalfToFloat(const Target& target, const void* src, float* dst, std::size_t n);
void copyDeviceHalfToDouble(const Target& target, const void* src, double* dst, std::size_t n);

}  // namespace poplar

template <>
struct std::hash<poplar::Target> {
  std::size_t operator()(const poplar::Target& t) const { return t.hash(); }
};
