#include "processes.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "compiler_bridge.hpp"
#include "error.hpp"
#include "failure.hpp"
#include "handle.hpp"
#include "hosts/PeerError.hpp"
#include "hosts/ProcessRecord.hpp"
#include "hosts/Transport.hpp"

namespace ipujax::plugin::processes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// How long processes may come after each other: JAX's own limit.
constexpr seconds kPatience{300};

/// The callbacks live only as long as the client is made.
PJRT_Error* makeCallbackError(PJRT_Error_Code code, const char* message, std::size_t size) {
  return makeError(makeFailure(code, std::string(message, size)));
}

void require(PJRT_Error* given, const std::string& key) {
  if (!given) return;
  const auto error = adopt<Error>(given);
  throw PluginError(error->failure().code,
                    "[hosts] needs JAX's key-value store; got an error for " + key + ": " +
                        error->failure().message + ". See what the other processes printed.");
}

/// JAX's store of texts, which its coordinator keeps.
class JaxStore final : public hosts::KeyValueStore {
 public:
  JaxStore(const PJRT_Client_Create_Args& args, std::string prefix)
      : args_(args), prefix_(std::move(prefix)) {}

  void put(const std::string& name, const std::string& value) override {
    const std::string key = prefix_ + name;
    PJRT_CallbackError on_error = makeCallbackError;
    PJRT_KeyValuePutCallback_Args put{};
    put.struct_size = sizeof put;
    put.key = key.data();
    put.key_size = key.size();
    put.value = value.data();
    put.value_size = value.size();
    put.callback_error = &on_error;
    put.user_arg = args_.kv_put_user_arg;
    require(args_.kv_put_callback(&put), key);
  }

  std::string get(const std::string& name, milliseconds patience) override {
    const std::string key = prefix_ + name;
    PJRT_CallbackError on_error = makeCallbackError;
    PJRT_KeyValueGetCallback_Args get{};
    get.struct_size = sizeof get;
    get.key = key.data();
    get.key_size = key.size();
    get.timeout_in_ms = static_cast<int>(patience.count());
    get.callback_error = &on_error;
    get.user_arg = args_.kv_get_user_arg;
    require(args_.kv_get_callback(&get), key);
    std::string value(get.value, get.value_size);
    if (get.value_deleter_callback) get.value_deleter_callback(get.value);
    return value;
  }

 private:
  const PJRT_Client_Create_Args& args_;
  const std::string prefix_;
};

std::string textOf(const Options& options, std::string_view name, std::string fallback) {
  const auto found = options.find(name);
  const auto* text = found == options.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text && !text->empty() ? *text : std::move(fallback);
}

milliseconds silenceOf(const Options& options) {
  const auto found = options.find("host_timeout");
  const auto* given = found == options.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
  return given && *given > 0 ? seconds(*given) : kPatience;
}

std::string hostName() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

hosts::ProcessRecord recordOf(const PlatformConfig& config) {
  const std::string backend = runtime::backendVersion();
  return {.common = {{"version of ipujax", IPUJAX_VERSION},
                     {"backend", runtime::backendName() + (backend.empty() ? "" : " " + backend)},
                     {"number of processes", std::to_string(config.numNodes())},
                     {"machine", config.machine.name},
                     {"tiles of an IPU", std::to_string(config.num_tiles)},
                     {"options of programs", textOf(config.options, "program_options", "none")}},
          .host = hostName(),
          .ipus = config.nodes[static_cast<std::size_t>(config.node_id)]};
}

/// The channels of all clients, for a word of goodbye.
struct Channels {
  std::mutex mutex;
  std::vector<std::weak_ptr<hosts::Channel>> all;
};
Channels& channels() {
  static auto* made = new Channels;
  return *made;
}

/// A key is written once: each client of a process has its own.
std::string nextPrefix() {
  static std::atomic<int> clients{0};
  return "clients/" + std::to_string(clients.fetch_add(1)) + "/";
}

}  // namespace

std::shared_ptr<hosts::Channel> meet(const PJRT_Client_Create_Args& args, PlatformConfig& config) {
  if (config.numNodes() < 2) return nullptr;
  if (!args.kv_get_callback || !args.kv_put_callback) {
    failInvalidArgument(
        "[hosts] needs JAX's key-value store for several processes; got a client without one. Call "
        "jax.distributed.initialize().");
  }
  JaxStore store(args, nextPrefix());
  const auto self = static_cast<std::uint32_t>(config.node_id);
  const auto count = static_cast<std::uint32_t>(config.numNodes());
  const auto records = hosts::agree(store, self, count, recordOf(config), kPatience);
  std::map<std::string, std::int64_t> hosts;
  for (std::size_t p = 0; p < records.size(); ++p) {
    config.nodes[p] = records[p].ipus;
    const auto next = static_cast<std::int64_t>(hosts.size());
    config.slices.push_back(hosts.try_emplace(records[p].host, next).first->second);
  }
  if (!hosts::canConnect()) return nullptr;
  auto channel = std::make_shared<hosts::Channel>(
      hosts::connect(store, self, count, textOf(config.options, "host_address", "127.0.0.1"),
                     kPatience),
      self, count, silenceOf(config.options));
  const std::lock_guard lock(channels().mutex);
  channels().all.push_back(channel);
  return channel;
}

void failWithoutChannel() {
  throw PluginError(PJRT_Error_Code_UNIMPLEMENTED,
                    "[hosts] needs gloo for a program over several processes; got a build without "
                    "it. Install libgloo-dev and build ipujax again (apt-get install libgloo-dev; "
                    "make build), or use jax.local_devices().");
}

void sayGoodbye() {
  std::vector<std::shared_ptr<hosts::Channel>> open;
  {
    const std::lock_guard lock(channels().mutex);
    for (const auto& each : channels().all)
      if (auto channel = each.lock()) open.push_back(std::move(channel));
  }
  for (const auto& channel : open) {
    channel->awaitAll();
    channel->fail("[hosts] needs all processes to call the same programs; got the end of process " +
                  std::to_string(channel->self()) +
                  ", while another one waits for it. See what that process printed.");
  }
}

}  // namespace ipujax::plugin::processes
