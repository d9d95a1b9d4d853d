#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "hosts/PeerError.hpp"
#include "hosts/Transport.hpp"

namespace ipujax::hosts {
namespace {

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;
using std::chrono::milliseconds;

constexpr const char* kCancelled = "it was interrupted";

/// gloo's view of the store of keys.
class Store final : public gloo::rendezvous::Store {
 public:
  Store(KeyValueStore& store, milliseconds patience) : store_(store), patience_(patience) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.put("gloo/" + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get("gloo/" + key, patience_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, patience_); }
  void wait(const std::vector<std::string>& keys, const milliseconds&) override {
    for (const auto& key : keys) get(key);
  }

 private:
  KeyValueStore& store_;
  const milliseconds patience_;
};

class GlooTransport final : public Transport {
 public:
  GlooTransport(KeyValueStore& store, std::uint32_t self, std::uint32_t count,
                const std::string& address, milliseconds patience) {
    auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address.c_str()));
    context_ = std::make_unique<gloo::rendezvous::Context>(static_cast<int>(self),
                                                           static_cast<int>(count));
    context_->setTimeout(patience);
    Store addresses(store, patience);
    context_->connectFullMesh(addresses, device);
  }

  void exchange(std::span<const Send> sends, std::span<const Receive> receives, Deadline deadline,
                const std::function<void(std::size_t)>& arrived) override {
    Exchange exchange(*this);
    for (const auto& receive : receives) {
      auto& buffer = exchange.add(receive.bytes.data(), receive.bytes.size());
      guard(receive.process, deadline,
            [&] { buffer.recv(static_cast<int>(receive.process), receive.number); });
    }
    for (const auto& send : sends) {
      auto& buffer = exchange.add(const_cast<std::byte*>(send.bytes.data()), send.bytes.size());
      guard(send.process, deadline,
            [&] { buffer.send(static_cast<int>(send.process), send.number); });
    }
    auto buffer = exchange.buffers.begin();
    for (std::size_t i = 0; i < receives.size(); ++i) {
      auto& waiting = **buffer++;
      await(receives[i].process, deadline, [&](auto left) { return waiting.waitRecv(left); });
      arrived(i);
    }
    for (const auto& send : sends) {
      auto& waiting = **buffer++;
      await(send.process, deadline, [&](auto left) { return waiting.waitSend(left); });
    }
  }

  void post(std::uint32_t process, std::uint64_t number, std::string bytes) noexcept override {
    try {
      auto& kept = posted_.emplace_back(std::move(bytes), nullptr);
      kept.second = context_->createUnboundBuffer(kept.first.data(), kept.first.size());
      kept.second->send(static_cast<int>(process), number);
    } catch (...) {  // the process is gone: nobody waits for the message
    }
  }

  void cancel() noexcept override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (!active_) return;
    for (const auto& buffer : active_->buffers) {
      buffer->abortWaitRecv();
      buffer->abortWaitSend();
    }
  }

  void forgetCancel() noexcept override { cancelled_ = false; }

 private:
  /// The buffers of the exchange in progress.
  struct Exchange {
    explicit Exchange(GlooTransport& the_transport) : transport(the_transport) {
      const std::lock_guard lock(transport.mutex_);
      transport.active_ = this;
    }
    ~Exchange() {
      const std::lock_guard lock(transport.mutex_);
      transport.active_ = nullptr;
    }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    gloo::transport::UnboundBuffer& add(void* data, std::size_t size) {
      auto buffer = transport.context_->createUnboundBuffer(data, size);
      const std::lock_guard lock(transport.mutex_);
      return *buffers.emplace_back(std::move(buffer));
    }

    GlooTransport& transport;
    std::vector<Buffer> buffers;
  };

  /// Calls `step`, which uses the connection to a process.
  template <class Step>
  static void guard(std::uint32_t process, Deadline deadline, const Step& step) {
    try {
      step();
    } catch (const gloo::Exception&) {
      const bool is_late = std::chrono::steady_clock::now() >= deadline;
      throw PeerLost(process, is_late ? "no answer" : "a closed connection");
    }
  }

  template <class Wait>
  void await(std::uint32_t process, Deadline deadline, const Wait& wait) {
    bool is_over = false;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Deadline::clock::now());
    guard(process, deadline, [&] {
      is_over = !cancelled_ && wait(std::max(left, milliseconds{1}));
    });
    if (!is_over) throw ExchangeCancelled(kCancelled);
  }

  std::unique_ptr<gloo::rendezvous::Context> context_;
  std::mutex mutex_;
  Exchange* active_ = nullptr;  // under the mutex, and so are its buffers
  std::atomic<bool> cancelled_{false};
  std::list<std::pair<std::string, Buffer>> posted_;
};

}  // namespace

bool canConnect() { return true; }

std::unique_ptr<Transport> connect(KeyValueStore& store, std::uint32_t self, std::uint32_t count,
                                   const std::string& address, milliseconds patience) {
  try {
    return std::make_unique<GlooTransport>(store, self, count, address, patience);
  } catch (const gloo::Exception& error) {
    throw PeerError("[hosts] needs connections between all processes, to process " +
                    std::to_string(self) + " at " + address + "; got: " + error.what() +
                    ". Set IPUJAX_HOST_ADDRESS to an address at which the other hosts reach "
                    "this one.");
  }
}

}  // namespace ipujax::hosts
