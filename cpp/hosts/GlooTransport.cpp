#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "hosts/PeerError.hpp"
#include "hosts/Transport.hpp"

namespace ipujax::hosts {
namespace {

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
    std::vector<Message*> receiving, sending;
    for (const auto& receive : receives) {
      receiving.push_back(&exchange.add(receive.bytes.data(), receive.bytes.size()));
      guard(receive.process, deadline, [&] {
        receiving.back()->buffer->recv(static_cast<int>(receive.process), receive.number);
      });
    }
    for (const auto& send : sends) {
      sending.push_back(
          &exchange.add(const_cast<std::byte*>(send.bytes.data()), send.bytes.size()));
      const auto& bytes = send.bytes;
      auto& own = sending.back()->bytes;
      if (!own.empty()) std::memcpy(own.data(), bytes.data(), bytes.size());
      guard(send.process, deadline,
            [&] { sending.back()->buffer->send(static_cast<int>(send.process), send.number); });
    }
    for (std::size_t i = 0; i < receives.size(); ++i) {
      auto& message = *receiving[i];
      await(receives[i].process, deadline,
            [&](auto left) { return message.buffer->waitRecv(left); });
      if (!message.bytes.empty())
        std::memcpy(receives[i].bytes.data(), message.bytes.data(), message.bytes.size());
      arrived(i);
    }
    for (std::size_t i = 0; i < sends.size(); ++i) {
      await(sends[i].process, deadline,
            [&](auto left) { return sending[i]->buffer->waitSend(left); });
    }
    exchange.forget();
  }

  void post(std::uint32_t process, std::uint64_t number, std::string bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    try {
      auto& kept = kept_.emplace_back(Message{std::move(bytes), nullptr});
      kept.buffer = context_->createUnboundBuffer(kept.bytes.data(), kept.bytes.size());
      kept.buffer->send(static_cast<int>(process), number);
    } catch (...) {  // the process is gone: nobody waits for the message
    }
  }

  void cancel() noexcept override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (!active_) return;
    for (const auto& message : active_->messages) {
      message.buffer->abortWaitRecv();
      message.buffer->abortWaitSend();
    }
  }

  void forgetCancel() noexcept override { cancelled_ = false; }

  void close() noexcept override {
    try {
      context_->closeConnections();
    } catch (...) {  // those that are closed already
    }
  }

 private:
  /// A message, with memory of its own if it is short. gloo stops reading from a process whose
  /// message has nowhere to go, so those that an error leaves behind are kept.
  struct Message {
    std::string bytes;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  };

  /// The messages of the exchange in progress.
  struct Exchange {
    explicit Exchange(GlooTransport& the_transport) : transport(the_transport) {
      const std::lock_guard lock(transport.mutex_);
      transport.active_ = this;
    }
    ~Exchange() {
      const std::lock_guard lock(transport.mutex_);
      transport.active_ = nullptr;
      std::erase_if(messages, [](const Message& each) { return each.bytes.empty(); });
      transport.kept_.splice(transport.kept_.end(), messages);
    }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    Message& add(std::byte* data, std::size_t size) {
      const std::lock_guard lock(transport.mutex_);
      auto& message = messages.emplace_back();
      if (size <= kKept) message.bytes.resize(size);
      void* memory = size <= kKept ? static_cast<void*>(message.bytes.data()) : data;
      message.buffer = transport.context_->createUnboundBuffer(memory, size);
      return message;
    }
    void forget() {
      const std::lock_guard lock(transport.mutex_);
      messages.clear();
    }

    GlooTransport& transport;
    std::list<Message> messages;  // a list, since their memory must not move
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
    guard(process, deadline,
          [&] { is_over = !cancelled_ && wait(std::max(left, milliseconds{1})); });
    if (!is_over) throw ExchangeCancelled(kCancelled);
  }

  std::unique_ptr<gloo::rendezvous::Context> context_;
  std::mutex mutex_;
  Exchange* active_ = nullptr;  // under the mutex, and so are its messages
  std::atomic<bool> cancelled_{false};
  std::list<Message> kept_;  // may never be sent or received
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
