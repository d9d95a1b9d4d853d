#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/Peers.hpp"

namespace ipujax::engine {

/// The exchanges of a session with the other processes of its program.
class PeerExchange {
 public:
  explicit PeerExchange(std::shared_ptr<runtime::Peers> peers) : peers_(std::move(peers)) {}

  runtime::Peers& peers() const { return *peers_; }
  std::uint32_t self() const { return peers_->self(); }
  void setPlace(std::uint64_t number, std::string what);

  /// Memory for one step, kept from step to step.
  std::byte* scratch(std::size_t bytes);

  /// What the next exchange sends and receives: for each two processes, both name the same sizes in
  /// the same order.
  void send(std::uint32_t process, const std::byte* bytes, std::size_t size);
  void receive(std::uint32_t process, std::byte* bytes, std::size_t size);
  void exchange();

  /// Throws, with both values, unless all processes of the program have the same one.
  void requireSame(std::int64_t value, const std::string& what);

 private:
  const std::shared_ptr<runtime::Peers> peers_;
  std::uint64_t number_ = 0;
  std::string what_;
  std::vector<std::byte> scratch_;
  std::vector<runtime::Outgoing> sends_;
  std::vector<runtime::Incoming> receives_;
};

}  // namespace ipujax::engine
