#include "poplar/Target.hpp"

#include <algorithm>

#include "poplar/DeviceManager.hpp"
#include "poplar/IPUModel.hpp"
#include "poplar/exceptions.hpp"

namespace poplar {

Machine machineByName(const std::string& name) {
  Machine machine;
  if (name == "gc200" || name == "ipu2") return machine;
  if (name == "bow") {
    machine.clock_hz = 1.85e9;  // MLPerf training v2.0 system files
    return machine;
  }
  if (name == "c600" || name == "ipu21") {
    machine.name = "ipu21";
    machine.clock_hz = 1.5e9;  // read on the device by ipu-stack; agrees with 280 TFLOP/s FP16
    return machine;
  }
  throw poplar_error("[Target] needs machine 'gc200', 'bow' or 'c600'; got '" + name + "'");
}

Target::Target() : Target(Machine{}, 1, TargetType::IPU_MODEL) {}

Target::Target(Machine machine, unsigned numIPUs, TargetType type) {
  machine.target = type;
  machine.num_ipus = numIPUs;
  machine_ = std::make_shared<const Machine>(std::move(machine));
  if (numIPUs == 0 || machine_->tiles_per_ipu == 0)
    throw poplar_error("[Target] needs at least one IPU and one tile");
}

Target Target::createIPUTarget(unsigned numIPUs, StringRef systemType) {
  return {machineByName(std::string(systemType)), numIPUs, TargetType::IPU_MODEL};
}

Target Target::createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef systemType) {
  return createIPUTarget(numIPUs, systemType).withTiles(numIPUs, tilesPerIPU);
}

Target Target::withTiles(unsigned num_ipus, unsigned tiles_per_ipu) const {
  Machine machine = *machine_;
  machine.tiles_per_ipu = tiles_per_ipu;
  return {std::move(machine), num_ipus, machine_->target};
}

unsigned Target::getVectorWidth(const Type& type) const {
  return std::max<unsigned>(
      1, machine_->data_path_width / 8 / static_cast<unsigned>(engineSize(type)));
}

std::size_t Target::engineSize(const Type& type) { return ipujax::engine::sizeOf(type.element()); }

Device Device::createCPUDevice() { return Device(Target(Machine{}, 1, TargetType::CPU)); }

std::vector<Device> DeviceManager::getDevices(TargetType type, unsigned requiredNumIPUs) const {
  if (type != TargetType::IPU_MODEL) return {};
  return {Device(Target(Machine{}, requiredNumIPUs, type))};
}

IPUModel::IPUModel(StringRef arch) : machine_(machineByName(std::string(arch))) {
  tilesPerIPU = machine_.tiles_per_ipu;
  numWorkerContexts = machine_.worker_contexts;
  bytesPerTile = machine_.bytes_per_tile;
  exchangeBytesPerCycle = machine_.exchange_bytes_per_cycle;
  tileClockFrequency = machine_.clock_hz;
}

Device IPUModel::createDevice() const {
  Machine machine = machine_;
  machine.tiles_per_ipu = tilesPerIPU;
  machine.worker_contexts = numWorkerContexts;
  machine.bytes_per_tile = bytesPerTile;
  machine.exchange_bytes_per_cycle = exchangeBytesPerCycle;
  machine.clock_hz = tileClockFrequency;
  return Device(Target(machine, numIPUs, TargetType::IPU_MODEL));
}

}  // namespace poplar
