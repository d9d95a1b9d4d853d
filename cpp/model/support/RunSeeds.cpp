#include "support/RunSeeds.hpp"

namespace ipujax::runtime {
namespace {

std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

}  // namespace

std::array<std::uint32_t, 2> RunSeed::of(std::uint32_t replica) const {
  std::uint64_t words = mixed(mixed(seed) ^ run);
  words = mixed(words ^ (identical_replicas ? 0 : replica));
  return {static_cast<std::uint32_t>(words), static_cast<std::uint32_t>(words >> 32)};
}

RunSeeds& RunSeeds::shared() {
  static RunSeeds seeds;
  return seeds;
}

void RunSeeds::reset(std::uint64_t seed, bool identical_replicas) {
  const std::scoped_lock lock(mutex_);
  next_ = {seed, 0, identical_replicas};
  next_shared_ = 0;
}

RunSeed RunSeeds::next() {
  const std::scoped_lock lock(mutex_);
  const RunSeed now = next_;
  ++next_.run;
  return now;
}

RunSeed RunSeeds::nextShared() {
  const std::scoped_lock lock(mutex_);
  RunSeed now = next_;
  now.run = next_shared_++;
  return now;
}

}  // namespace ipujax::runtime
