#include "hosts/PeerError.hpp"
#include "hosts/Transport.hpp"

// In builds without gloo, in place of GlooTransport.cpp.
namespace ipujax::hosts {

bool canConnect() { return false; }

std::unique_ptr<Transport> connect(KeyValueStore&, std::uint32_t, std::uint32_t, const std::string&,
                                   std::chrono::milliseconds) {
  throw PeerError(
      "[hosts] needs gloo for programs over several processes; got a build without it. Install "
      "libgloo-dev (apt-get install libgloo-dev), then build ipujax again (make build).");
}

}  // namespace ipujax::hosts
