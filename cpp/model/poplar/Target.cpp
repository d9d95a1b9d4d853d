#include "poplar/Target.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <istream>
#include <ostream>
#include <sstream>
#include <stdexcept>

#include "engine/Half.hpp"
#include "engine/Links.hpp"
#include "poplar/IPUModel.hpp"
#include "poplar/exceptions.hpp"

namespace poplar {

using ipujax::engine::System;

namespace {

/// The machine that a system named "IPU-POD16" or "Bow-POD64-DA" has; other names are unchanged.
std::string machineIn(const std::string& system) {
  std::string lower = system;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* beginning : {"ipu-pod", "ipu-m2000"})
    if (lower.starts_with(beginning)) return "gc200";
  return lower.starts_with("bow-") ? "bow" : system;
}

const Machine& machineOf(StringRef name) {
  try {
    return ipujax::engine::machineByName(machineIn(name));
  } catch (const std::invalid_argument& error) {
    throw poplar_error(error.what());
  }
}

const Machine& defaultMachine() { return ipujax::engine::machines().front(); }

}  // namespace

Target::Target() : Target(System{defaultMachine()}) {}

Target::Target(System system) : system_(std::make_shared<const System>(std::move(system))) {
  if (system_->numTiles() == 0)
    throw poplar_error(
        "[Target] needs at least one IPU and one tile; got none. Pass numbers of at least 1.");
}

Target Target::createIPUTarget(unsigned numIPUs, StringRef systemType, const OptionFlags&) {
  return Target(System{machineOf(systemType), numIPUs});
}

Target Target::createCPUTarget(bool, unsigned numIPUs) {
  if (numIPUs == 0)
    throw poplar_error(
        "[Target::createCPUTarget] needs at least one IPU; got 0. Pass their number.");
  System system{defaultMachine(), numIPUs, TargetType::CPU};
  system.machine.tiles_per_ipu = 1;
  system.machine.worker_contexts = 1;
  system.machine.bytes_per_tile = std::uint64_t{1} << 40;  // not limited by a tile's memory
  system.machine.executable_bytes_per_tile = system.machine.bytes_per_tile;
  system.machine.memory_element_bytes = 0;
  return Target(std::move(system));
}

Target Target::createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef systemType,
                               const OptionFlags&) {
  return createIPUTarget(numIPUs, systemType).withTiles(numIPUs, tilesPerIPU);
}

Target Target::createIPUTarget(StringRef system, const OptionFlags& opts) {
  const std::string text(system);
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return createIPUTarget(1, system, opts);
  const std::string count = text.substr(colon + 1);
  const bool is_number =
      !count.empty() && count.size() < 6 &&
      std::all_of(count.begin(), count.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) {
    throw poplar_error("[Target::createIPUTarget] needs a machine, or \"<machine>:<n>\"; got '" +
                       text + "'. Use a number of IPUs after the colon.");
  }
  return createIPUTarget(static_cast<unsigned>(std::stoul(count)), text.substr(0, colon), opts);
}

std::string Target::text() const {
  std::ostringstream os;
  const Machine& m = machine();
  os << "ipujax-target " << static_cast<int>(getTargetType()) << ' ' << getNumIPUs() << ' '
     << m.name << ' ' << m.tiles_per_ipu << ' ' << m.worker_contexts << ' ' << m.bytes_per_tile
     << ' ' << m.executable_bytes_per_tile << ' ' << m.data_path_width << ' '
     << m.exchange_bytes_per_cycle << ' ' << m.memcpy_bytes_per_cycle << ' ' << m.sync_cycles << ' '
     << m.global_sync_cycles << ' ' << std::hexfloat << m.clock_hz << '\n';
  return os.str();
}

void Target::serialize(std::ostream& out) const { out << text(); }
std::size_t Target::hash() const { return std::hash<std::string>()(text()); }

Target::Target(std::istream& in) {
  std::string head;
  std::string name;
  std::string clock;
  int type = -1;
  System system{defaultMachine()};
  in >> head >> type >> system.num_ipus >> name;
  const bool is_target = in && head == "ipujax-target" && type >= 0 && type <= 2;
  if (is_target) system.machine = machineOf(name);
  Machine& m = system.machine;
  in >> m.tiles_per_ipu >> m.worker_contexts >> m.bytes_per_tile >> m.executable_bytes_per_tile >>
      m.data_path_width >> m.exchange_bytes_per_cycle >> m.memcpy_bytes_per_cycle >>
      m.sync_cycles >> m.global_sync_cycles >> clock;
  if (!is_target || !in || system.numTiles() == 0) {
    throw poplar_error(
        "[Target] needs what Target::serialize wrote; got something else. Serialize a target of "
        "this library.");
  }
  m.clock_hz = std::strtod(clock.c_str(), nullptr);
  system.type = static_cast<TargetType>(type);
  system_ = std::make_shared<const System>(std::move(system));
}

unsigned Target::getWeightsPerConvUnit(const Type& type) const {
  if (type.requiresMetadata()) return 2 * machine().weights_per_unit_fp16;
  return getWeightsPerConvUnit(type == FLOAT);
}

unsigned Target::getNumConvUnits(bool floatActivations, bool floatPartial) const {
  if (floatActivations) return machine().fp32_units;
  return floatPartial ? machine().fp16_in_fp32_out_units : machine().fp16_in_fp16_out_units;
}

Target::Limits Target::limitsOf(const Type& t) {
  const auto integral = [](auto zero) {
    using T = decltype(zero);
    const T max = std::numeric_limits<T>::max();
    const T lowest = std::numeric_limits<T>::lowest();
    return Limits{true, static_cast<double>(max), static_cast<double>(lowest),
                  static_cast<std::uint64_t>(max), static_cast<std::int64_t>(lowest)};
  };
  using ipujax::engine::ElementType;
  if (t.requiresMetadata()) throwLimit(t);
  switch (t.element()) {
    case ElementType::kBool:
      return {true, 1, 0, 1, 0};
    case ElementType::kHalf:
      return {false, 65504, -65504, 0, 0};
    case ElementType::kFloat:
      return {false, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(), 0, 0};
    case ElementType::kDouble:
      return {false, std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest(), 0,
              0};
    default:
      return ipujax::engine::withInteger(t.element(), integral);
  }
}

void Target::throwLimit(const Type& t) {
  throw poplar_error("[Target::getTypeLimits] needs a host type that holds the limits of " +
                     t.toString() + " exactly; got another. Use double or a wider integer.");
}

std::vector<std::size_t> Target::getMemoryElementOffsets() const {
  const std::uint64_t element = machine().memory_element_bytes;
  std::vector<std::size_t> offsets{0};
  while (element > 0) {
    const std::uint64_t from = offsets.back();
    const std::uint64_t next =
        from + (from < machine().executable_bytes_per_tile ? element : 2 * element);
    if (next >= machine().bytes_per_tile) break;
    offsets.push_back(next);
  }
  return offsets;
}

std::size_t Target::getInterleavedMemoryElementIndex() const {
  const auto offsets = getMemoryElementOffsets();
  const auto first = std::ranges::lower_bound(offsets, machine().executable_bytes_per_tile);
  return static_cast<std::size_t>(first - offsets.begin());
}

Target Target::withTiles(unsigned num_ipus, unsigned tiles_per_ipu) const {
  System system = *system_;
  system.num_ipus = num_ipus;
  system.machine.tiles_per_ipu = tiles_per_ipu;
  return Target(std::move(system));
}

Target Target::createVirtualTarget(unsigned numIPUs, unsigned tilesPerIPU) const {
  if (numIPUs == 0 || numIPUs > getNumIPUs() || tilesPerIPU == 0 || tilesPerIPU > getTilesPerIPU())
    throw poplar_error("[Target::createVirtualTarget] needs 1 to " + std::to_string(getNumIPUs()) +
                       " IPUs of 1 to " + std::to_string(getTilesPerIPU()) + " tiles; got " +
                       std::to_string(numIPUs) + " of " + std::to_string(tilesPerIPU) +
                       ". Use numbers in these ranges.");
  return withTiles(numIPUs, tilesPerIPU);
}

namespace {

[[noreturn]] unsigned refuseHardware(const char* name, const char* what) {
  throw poplar_error(std::string("[Target::") + name + "] needs an IPU; got the IPU Model, which " +
                     "has no " + what + ". Leave it out on the model.");
}

}  // namespace

unsigned Target::getNumTilesPerXBContext() const {
  return refuseHardware("getNumTilesPerXBContext", "exchange blocks");
}
std::vector<GlobalExchangeConstraint> Target::getGlobalExchangeConstraints() const {
  std::vector<GlobalExchangeConstraint> constraints;
  for (const auto& link : ipujax::engine::sharedLinks(getNumIPUs(), machine())) {
    std::vector<GlobalExchangeFlow> flows;
    for (const auto& [from, to] : link.flows) flows.emplace_back(from, to);
    constraints.emplace_back(8 * link.bytes_per_second, flows);
  }
  return constraints;
}
unsigned Target::getNumContextsPerXB() const {
  return refuseHardware("getNumContextsPerXB", "exchange blocks");
}
unsigned Target::getTileHostExchangeXB(unsigned) const {
  return refuseHardware("getTileHostExchangeXB", "exchange blocks");
}
unsigned Target::getTileHostExchangeContext(unsigned) const {
  return refuseHardware("getTileHostExchangeContext", "exchange blocks");
}
unsigned Target::getTileHostExchangeContextPosition(unsigned) const {
  return refuseHardware("getTileHostExchangeContextPosition", "exchange blocks");
}
// Register numbers and bits of a Mk2 tile. Source: public tile definitions, CSR_S_FP_ICTL__* and
// CSR_C_DBG_DATA__INDEX.
unsigned Target::makeFpIctlValue(bool inv, bool div0, bool oflo, bool esr, bool nanoo) const {
  return unsigned{inv} | unsigned{div0} << 1 | unsigned{oflo} << 2 | unsigned{esr} << 19 |
         unsigned{nanoo} << 20;
}
unsigned Target::getFpIctlRegIndex() const { return 0x20; }
unsigned Target::getDbgDataRegIndex() const { return 0x70; }

unsigned Target::getVectorWidth(const Type& type) const {
  return std::max<unsigned>(
      1, machine().data_path_width / 8 / static_cast<unsigned>(getTypeSize(type)));
}

bool Target::isSame(const Target& other) const {
  const Machine& a = machine();
  const Machine& b = other.machine();
  return getTargetType() == other.getTargetType() && getNumIPUs() == other.getNumIPUs() &&
         a.name == b.name && a.tiles_per_ipu == b.tiles_per_ipu &&
         a.worker_contexts == b.worker_contexts && a.bytes_per_tile == b.bytes_per_tile &&
         a.clock_hz == b.clock_hz;
}

namespace {

template <class From>
void toHalf(const From* src, void* dst, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint16_t bits = ipujax::engine::floatToHalf(static_cast<float>(src[i]));
    std::memcpy(static_cast<std::byte*>(dst) + 2 * i, &bits, 2);
  }
}

template <class To>
void fromHalf(const void* src, To* dst, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(src) + 2 * i, 2);
    dst[i] = ipujax::engine::halfToFloat(bits);
  }
}

}  // namespace

void copyFloatToDeviceHalf(const Target&, const float* src, void* dst, std::size_t n) {
  toHalf(src, dst, n);
}
void copyDoubleToDeviceHalf(const Target&, const double* src, void* dst, std::size_t n) {
  toHalf(src, dst, n);
}
void copyDeviceHalfToFloat(const Target&, const void* src, float* dst, std::size_t n) {
  fromHalf(src, dst, n);
}
void copyDeviceHalfToDouble(const Target&, const void* src, double* dst, std::size_t n) {
  fromHalf(src, dst, n);
}

IPUModel::IPUModel(StringRef arch) : machine_(machineOf(arch)) {
  tilesPerIPU = machine_.tiles_per_ipu;
  numWorkerContexts = machine_.worker_contexts;
  memoryBytesPerTile = static_cast<unsigned>(machine_.bytes_per_tile);
  exchangeBytesPerCycle = machine_.exchange_bytes_per_cycle;
  memcpyBytesPerCycle = machine_.memcpy_bytes_per_cycle;
  dataPathWidth = machine_.data_path_width;
  minIPUSyncDelay = machine_.sync_cycles;
  globalSyncCycles = machine_.global_sync_cycles;
  tileClockFrequency = machine_.clock_hz;
  fp16InFp16OutConvUnitsPerTile = machine_.fp16_in_fp16_out_units;
  fp16InFp32OutConvUnitsPerTile = machine_.fp16_in_fp32_out_units;
  fp32InFp32OutConvUnitsPerTile = machine_.fp32_units;
  const Target target(ipujax::engine::System{machine_, 1});
  fp16ConvUnitMaxPipelineDepth = target.getFp16ConvUnitMaxPipelineDepth();
  fp32ConvUnitMaxPipelineDepth = target.getFp32ConvUnitMaxPipelineDepth();
  fp16ConvUnitInputLoadElemsPerCycle = target.getFp16ConvUnitInputLoadElemsPerCycle();
  fp32ConvUnitInputLoadElemsPerCycle = target.getFp32ConvUnitInputLoadElemsPerCycle();
  fp8InFp16OutConvUnitsPerTile = target.getFp8InFp16OutConvUnitsPerTile();
  fp8ConvUnitMaxPipelineDepth = target.getFp8ConvUnitMaxPipelineDepth();
  fp8ConvUnitInputLoadElemsPerCycle = target.getFp8ConvUnitInputLoadElemsPerCycle();
  convUnitCoeffLoadBytesPerCycle = target.getConvUnitCoeffLoadBytesPerCycle();
}

Device IPUModel::createDevice(const OptionFlags&, bool, unsigned deviceManagerId) const {
  Machine machine = machine_;
  machine.tiles_per_ipu = tilesPerIPU;
  machine.worker_contexts = numWorkerContexts;
  machine.bytes_per_tile = memoryBytesPerTile;
  machine.executable_bytes_per_tile =
      std::min(machine.executable_bytes_per_tile, machine.bytes_per_tile);
  machine.exchange_bytes_per_cycle = exchangeBytesPerCycle;
  machine.memcpy_bytes_per_cycle = memcpyBytesPerCycle;
  machine.data_path_width = dataPathWidth;
  machine.sync_cycles = minIPUSyncDelay;
  machine.global_sync_cycles = globalSyncCycles;
  machine.clock_hz = tileClockFrequency;
  machine.fp16_in_fp16_out_units = fp16InFp16OutConvUnitsPerTile;
  machine.fp16_in_fp32_out_units = fp16InFp32OutConvUnitsPerTile;
  machine.fp32_units = fp32InFp32OutConvUnitsPerTile;
  machine.weights_per_unit_fp16 = fp16ConvUnitMaxPipelineDepth * fp16ConvUnitInputLoadElemsPerCycle;
  machine.weights_per_unit_fp32 = fp32ConvUnitMaxPipelineDepth * fp32ConvUnitInputLoadElemsPerCycle;
  return Device(Target(System{machine, numIPUs}), deviceManagerId);
}

}  // namespace poplar
