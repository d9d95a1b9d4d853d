#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "runtime/FeedError.hpp"
#include "support/HostCallbacks.hpp"

namespace ipujax::runtime {

/// The replicas of a program that call a feed's port: those of this process, which are neighbours
/// where the program runs over several. Thread-safe.
class LocalReplicas {
 public:
  LocalReplicas(const char* feed, std::size_t count) : feed_(feed), count_(count) {}
  std::size_t count() const { return count_; }

  /// Reads a replica's number, which is also the call's first result; returns its number here.
  std::size_t numberOf(std::span<const HostArray> arguments, std::span<const HostArray> results) {
    std::int32_t replica = 0;
    std::memcpy(&replica, arguments[0].data, sizeof replica);
    std::memcpy(results[0].data, &replica, sizeof replica);
    const auto number = static_cast<std::int64_t>(replica);
    const auto count = static_cast<std::int64_t>(count_);
    const std::int64_t block = number / count;
    std::int64_t others = -1;
    if (number < 0 || (!block_.compare_exchange_strong(others, block) && others != block))
      throw FeedError("[" + std::string(feed_) + "] needs the " + std::to_string(count_) +
                      " replicas of a process to be neighbours; got replica " +
                      std::to_string(number) + " and one from " + std::to_string(others * count) +
                      " on. Order the devices of the mesh by process, as jax.devices() does.");
    return static_cast<std::size_t>(number - block * count);
  }

 private:
  const char* const feed_;
  const std::size_t count_;
  std::atomic<std::int64_t> block_{-1};
};

}  // namespace ipujax::runtime
