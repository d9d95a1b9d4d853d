#include "engine/kernels/collectives/PeerExchange.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace ipujax::engine {

void PeerExchange::setPlace(std::uint64_t number, std::string what) {
  number_ = number;
  what_ = std::move(what);
}

std::byte* PeerExchange::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return scratch_.data();
}

void PeerExchange::send(std::uint32_t process, const std::byte* bytes, std::size_t size) {
  if (size > 0) sends_.push_back({process, {bytes, size}});
}

void PeerExchange::receive(std::uint32_t process, std::byte* bytes, std::size_t size) {
  if (size > 0) receives_.push_back({process, {bytes, size}});
}

void PeerExchange::exchange() {
  const auto sends = std::move(sends_);
  const auto receives = std::move(receives_);
  sends_.clear();
  receives_.clear();
  if (!sends.empty() || !receives.empty()) peers_->exchange({number_, what_}, sends, receives);
}

void PeerExchange::requireSame(std::int64_t value, const std::string& what) {
  const auto& processes = peers_->processes();
  const std::uint32_t count = std::ranges::max(processes) + 1;
  std::vector<std::int64_t> theirs(count, value);
  for (std::uint32_t p = 0; p < count; ++p) {
    if (p == self()) continue;
    send(p, reinterpret_cast<const std::byte*>(&value), sizeof value);
    receive(p, reinterpret_cast<std::byte*>(&theirs[p]), sizeof value);
  }
  exchange();
  for (std::uint32_t p = 0; p < count; ++p) {
    if (theirs[p] == value) continue;
    const auto replica = [&](std::uint32_t process) {
      return std::to_string(std::ranges::find(processes, process) - processes.begin());
    };
    throw std::invalid_argument(
        "[replicas] needs all to take the same way around a collective; got a condition that is " +
        std::to_string(value) + " on replica " + replica(self()) + " and " +
        std::to_string(theirs[p]) + " on replica " + replica(p) + ", around " + what +
        ". Make the condition equal on all replicas, by a collective or by "
        "ipu.assume_equal_across_replicas.");
  }
}

}  // namespace ipujax::engine
