#pragma once
#include <memory>
#include <span>
#include <string>

#include "support/HostCallbacks.hpp"

namespace ipujax::runtime {

/// A host callback that is no Python: what a program calls without the GIL.
class HostPort {
 public:
  virtual ~HostPort() = default;
  /// As HostCallbacks::call; replicas call at one time.
  virtual void call(std::span<const HostArray> arguments, std::span<const HostArray> results) = 0;
};

/// The ports of the process by id. Every function may be called from any thread.
namespace ports {

/// Whether callbacks of this id are ports'.
bool names(const std::string& id);
/// Registers a port; returns its id. A program that calls the port keeps it while the call runs.
std::string add(std::shared_ptr<HostPort> port);
void remove(const std::string& id);
/// Throws FeedError if there is none of that id any more.
std::shared_ptr<HostPort> find(const std::string& id);

}  // namespace ports
}  // namespace ipujax::runtime
