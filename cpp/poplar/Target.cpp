#include "poplar/Target.hpp"

#include <algorithm>
#include <stdexcept>

#include "poplar/DeviceManager.hpp"
#include "poplar/IPUModel.hpp"
#include "poplar/exceptions.hpp"

namespace poplar {

using ipujax::engine::System;

namespace {

const Machine& machineOf(StringRef name) {
  try {
    return ipujax::engine::machineByName(std::string(name));
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

Target Target::createIPUTarget(unsigned numIPUs, StringRef systemType) {
  return Target(System{machineOf(systemType), numIPUs});
}

Target Target::createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef systemType) {
  return createIPUTarget(numIPUs, systemType).withTiles(numIPUs, tilesPerIPU);
}

Target Target::withTiles(unsigned num_ipus, unsigned tiles_per_ipu) const {
  System system = *system_;
  system.num_ipus = num_ipus;
  system.machine.tiles_per_ipu = tiles_per_ipu;
  return Target(std::move(system));
}

unsigned Target::getVectorWidth(const Type& type) const {
  return std::max<unsigned>(
      1, machine().data_path_width / 8 / static_cast<unsigned>(getTypeSize(type)));
}

Device Device::createCPUDevice() {
  return Device(Target(System{defaultMachine(), 1, TargetType::CPU}));
}

std::vector<Device> DeviceManager::getDevices(TargetType type, unsigned requiredNumIPUs) const {
  if (type != TargetType::IPU_MODEL) return {};
  return {Device(Target(System{defaultMachine(), requiredNumIPUs, type}))};
}

IPUModel::IPUModel(StringRef arch) : machine_(machineOf(arch)) {
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
  return Device(Target(System{machine, numIPUs}));
}

}  // namespace poplar
