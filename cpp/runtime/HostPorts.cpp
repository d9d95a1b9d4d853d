#include "runtime/HostPorts.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "runtime/FeedError.hpp"

namespace ipujax::runtime {
namespace {

constexpr char kPrefix[] = "port:";

struct Ports {
  std::shared_mutex mutex;
  std::map<std::string, std::shared_ptr<HostPort>> by_id;
  std::atomic<std::uint64_t> count{0};
};

/// Never destroyed: programs may still run while static objects are destroyed.
Ports& ports_() {
  static auto* const instance = std::make_unique<Ports>().release();
  return *instance;
}

}  // namespace

bool ports::names(const std::string& id) { return id.starts_with(kPrefix); }

std::string ports::add(std::shared_ptr<HostPort> port) {
  auto& all = ports_();
  auto id = kPrefix + std::to_string(all.count.fetch_add(1));
  const std::unique_lock lock(all.mutex);
  all.by_id.emplace(id, std::move(port));
  return id;
}

void ports::remove(const std::string& id) {
  auto& all = ports_();
  const std::unique_lock lock(all.mutex);
  all.by_id.erase(id);
}

std::shared_ptr<HostPort> ports::find(const std::string& id) {
  auto& all = ports_();
  const std::shared_lock lock(all.mutex);
  const auto found = all.by_id.find(id);
  if (found == all.by_id.end()) {
    throw FeedError("[feeds] needs a feed of this process; got a program whose feed '" + id +
                    "' is gone. Keep the Infeed or Outfeed as long as the program.");
  }
  return found->second;
}

}  // namespace ipujax::runtime
