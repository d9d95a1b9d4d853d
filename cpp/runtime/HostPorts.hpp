#pragma once
#include <memory>
#include <span>
#include <string>

#include "support/HostCallbacks.hpp"

namespace ipujax::runtime {

/// A host callback that is not Python, so programs call it without the GIL.
class HostPort {
 public:
  virtual ~HostPort() = default;
  /// Like HostCallbacks::call; replicas may call it concurrently.
  virtual void call(std::span<const HostArray> arguments, std::span<const HostArray> results) = 0;
};

/// All ports of the process, by id. Thread-safe.
namespace ports {

/// Whether this callback id is that of a port.
bool names(const std::string& id);
/// Registers a port; returns its id. A call keeps the port alive until it returns.
std::string add(std::shared_ptr<HostPort> port);
void remove(const std::string& id);
/// Throws FeedError if no port has this id any more.
std::shared_ptr<HostPort> find(const std::string& id);

}  // namespace ports
}  // namespace ipujax::runtime
