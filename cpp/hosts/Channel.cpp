#include "hosts/Channel.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <utility>

#include "hosts/PeerError.hpp"

namespace ipujax::hosts {
namespace {

/// Parts with fewer bytes are copied, so that many travel in one message.
constexpr std::size_t kWorthMessage = std::size_t{64} << 10;

/// The bytes between this process and another one in one direction: parts in order, and what of
/// them travels as one message.
template <class Byte>
class Stream {
 public:
  void add(std::span<Byte> part) {
    parts_.push_back(part);
    bytes_ += part.size();
  }
  std::uint64_t bytes() const { return bytes_; }
  bool isInline() const { return bytes_ <= Frame::kMostInline; }

  /// The messages: a long part, or a copy of neighbouring short ones. The lengths of the parts
  /// alone decide, so both ends have the same.
  std::vector<std::span<Byte>> messages() {
    std::vector<std::span<Byte>> made;
    for (std::size_t begin = 0; begin < parts_.size();) {
      std::size_t end = begin;
      std::size_t bytes = 0;
      while (end < parts_.size() && bytes < kWorthMessage && parts_[end].size() < kWorthMessage)
        bytes += parts_[end++].size();
      if (end - begin <= 1) {
        end = begin + 1;
        made.push_back(parts_[begin]);
      } else {
        auto& copy = copies_.emplace_back(Copy{begin, end, std::vector<std::byte>(bytes)});
        made.push_back(copy.bytes);
      }
      begin = end;
    }
    return made;
  }

  /// Calls f(copy, part) for all parts that travel in a copy.
  template <class F>
  void forEachCopied(const F& f) {
    for (auto& copy : copies_) {
      std::size_t at = 0;
      for (std::size_t i = copy.begin; i < copy.end; at += parts_[i++].size())
        f(copy.bytes.data() + at, parts_[i]);
    }
  }
  template <class F>
  void forEachInlined(std::span<std::byte> frame, const F& f) {
    std::size_t at = 0;
    for (const auto& part : parts_) {
      f(frame.data() + at, part);
      at += part.size();
    }
  }

 private:
  struct Copy {
    std::size_t begin, end;  // parts
    std::vector<std::byte> bytes;
  };
  std::vector<std::span<Byte>> parts_;
  std::list<Copy> copies_;
  std::uint64_t bytes_ = 0;
};

void pack(std::byte* to, std::span<const std::byte> part) {
  std::memcpy(to, part.data(), part.size());
}
void unpack(const std::byte* from, std::span<std::byte> part) {
  std::memcpy(part.data(), from, part.size());
}

}  // namespace

Channel::Channel(std::unique_ptr<Transport> transport, std::uint32_t self, std::uint32_t count,
                 std::chrono::milliseconds silence)
    : transport_(std::move(transport)),
      self_(self),
      silence_(silence),
      sent_(count),
      received_(count) {}

std::uint64_t Channel::takeTurn() {
  const std::lock_guard lock(mutex_);
  return turns_taken_++;
}

void Channel::enterTurn(std::uint64_t turn) {
  std::unique_lock lock(mutex_);
  turn_changed_.wait(lock, [&] { return turn_ == turn; });
}

void Channel::endTurn(std::uint64_t turn) {
  const std::lock_guard lock(mutex_);
  ended_.insert(turn);
  while (ended_.erase(turn_) > 0) ++turn_;
  turn_changed_.notify_all();
}

void Channel::awaitAll() {
  std::unique_lock lock(mutex_);
  turn_changed_.wait(lock, [&] { return turn_ == turns_taken_; });
}

void Channel::requireOpen() const {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw PeerError(failure_);
}

void Channel::exchange(const Position& position, std::span<const runtime::Outgoing> sends,
                       std::span<const runtime::Incoming> receives) {
  requireOpen();
  try {
    exchangeAll(position, sends, receives);
  } catch (const PeerLost& lost) {
    const std::string process = "process " + std::to_string(lost.process());
    const PeerError error("[hosts] needs all processes to run to their end; got " +
                          std::string(lost.what()) + " from " + process + " while process " +
                          std::to_string(self_) + " was at " + position.name + ". See what " +
                          process + " printed, and start all of them again.");
    fail(error.what());
    throw error;
  } catch (const PeerError& error) {
    fail(error.what());
    throw;
  }
}

void Channel::exchangeAll(const Position& position, std::span<const runtime::Outgoing> sends,
                          std::span<const runtime::Incoming> receives) {
  struct Out : Stream<const std::byte> {
    Frame frame{};
  };
  struct In : Stream<std::byte> {
    Frame frame{};
  };
  std::map<std::uint32_t, Out> outs;
  std::map<std::uint32_t, In> ins;
  for (const auto& send : sends) outs[send.process].add(send.bytes);
  for (const auto& receive : receives) ins[receive.process].add(receive.bytes);

  const Deadline deadline = std::chrono::steady_clock::now() + silence_;
  std::vector<Send> sending;
  std::vector<Receive> receiving;
  for (auto& [process, out] : outs) {
    out.frame = Frame(position, out.bytes());
    if (out.isInline()) out.forEachInlined(out.frame.inlined(), pack);
    sending.push_back({process, sent_[process]++, out.frame.raw()});
  }
  std::vector<std::function<void()>> checks;
  for (auto& [process, in] : ins) {
    receiving.push_back({process, received_[process]++, in.frame.raw()});
    checks.emplace_back(
        [&, p = process, i = &in] { i->frame.check(p, self_, position, i->bytes()); });
  }
  transport_->exchange(sending, receiving, deadline, [&](std::size_t i) { checks[i](); });

  sending.clear();
  receiving.clear();
  for (auto& [process, out] : outs) {
    if (out.isInline()) continue;
    for (const auto& message : out.messages())
      sending.push_back({process, sent_[process]++, message});
    out.forEachCopied(pack);
  }
  for (auto& [process, in] : ins) {
    if (in.isInline()) {
      in.forEachInlined(in.frame.inlined(), unpack);
      continue;
    }
    for (const auto& message : in.messages())
      receiving.push_back({process, received_[process]++, message});
  }
  if (!sending.empty() || !receiving.empty()) {
    try {
      transport_->exchange(sending, receiving, deadline, [](std::size_t) {});
    } catch (...) {  // these processes wait for no frame that could tell them
      transport_->close();
      throw;
    }
  }
  for (auto& [process, in] : ins) in.forEachCopied(unpack);
}

void Channel::fail(const std::string& reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return;
  failure_ = reason;
  const Frame frame = Frame::failure(reason);
  for (std::uint32_t process = 0; process < sent_.size(); ++process) {
    if (process == self_) continue;
    auto copy = frame;
    const auto& raw = copy.raw();
    transport_->post(process, sent_[process]++,
                     {reinterpret_cast<const char*>(raw.data()), raw.size()});
  }
}

}  // namespace ipujax::hosts
