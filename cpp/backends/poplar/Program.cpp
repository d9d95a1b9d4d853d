#include "backends/poplar/Program.hpp"

#include <sstream>
#include <utility>

#include "backends/poplar/Session.hpp"
#include "support/Seal.hpp"

namespace ipujax::poplar_backend {
namespace {

poplar::Executable deserialised(const std::string& bytes) {
  std::istringstream stream(bytes);
  try {
    return poplar::Executable::deserialize(stream);
  } catch (const std::exception& e) {
    throw runtime::ExecutableError(std::string("[Executable] needs an executable of this SDK: ") +
                                   e.what() + ". Compile it again.");
  }
}

std::string fingerprintOf(const std::string& bytes) {
  std::ostringstream text;
  text << std::hex << std::hash<std::string>()(bytes) << bytes.size();
  return text.str();
}

}  // namespace

Program::Program(Container container)
    : container_(std::move(container)),
      fingerprint_(fingerprintOf(container_.executable)),
      executable_(deserialised(container_.executable)) {}

poplar::Executable Program::takeExecutable() const {
  const std::lock_guard lock(mutex_);
  if (!executable_) return deserialised(container_.executable);
  poplar::Executable taken = std::move(*executable_);
  executable_.reset();
  return taken;
}

std::string Program::serialise(std::vector<std::int32_t> device_ids, std::string target) const {
  Container saved = container_;
  saved.signature.device_ids = std::move(device_ids);
  saved.signature.target = std::move(target);
  return saved.seal();
}

std::uint64_t Program::meaning() const {
  return runtime::checksum(fingerprint().data(), fingerprint().size());
}

std::unique_ptr<runtime::Session> Program::open(const runtime::DeviceStates& devices,
                                                std::shared_ptr<runtime::Peers> peers) const {
  if (peers) {
    throw runtime::NotSupportedError(
        "[ipu load] needs a program whose replicas run in this process; got one that spans "
        "processes, which the Poplar SDK's own PopDist connects. Use jax.local_devices().");
  }
  return std::make_unique<Session>(shared_from_this(), devices);
}

std::unique_ptr<runtime::Session> Program::openNested() const {
  throw runtime::NotSupportedError(
      "[ipu execute] needs devices that are free; got a call from inside a host callback while a "
      "program runs on them. Compute it with NumPy, on JAX's CPU backend, or on other devices.");
}

}  // namespace ipujax::poplar_backend
