#pragma once
#include <array>
#include <cstdint>
#include <mutex>

namespace ipujax::runtime {

/// Determines the random bits of one run of a program, except those of keys and seeds that it is
/// given.
struct RunSeed {
  std::uint64_t seed = 0;
  std::uint64_t run = 0;  ///< since the seed was set
  bool identical_replicas = false;

  /// Two words for each replica; the same for all if replicas are to be identical.
  std::array<std::uint32_t, 2> of(std::uint32_t replica) const;
};

/// A seed, and the number of runs since it was set. Thread-safe.
class RunSeeds {
 public:
  static RunSeeds& shared();  ///< of the process: ipujax.reset_seed
  void reset(std::uint64_t seed, bool identical_replicas);
  RunSeed next();
  /// For runs that other processes take part in: counted apart, since all of them count the same.
  RunSeed nextShared();

 private:
  std::mutex mutex_;
  RunSeed next_;
  std::uint64_t next_shared_ = 0;
};

}  // namespace ipujax::runtime
