#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/VertexAbi.hpp"

namespace ipujax::engine {

/// A hash of memory that others may write meanwhile.
std::uint64_t hashOf(const std::vector<IpujaxRange>& memory);

/// Tells whether a worker waits: its registers and stack have returned twice to the same state, and
/// memory is the same as the first time. Unless someone else writes memory, it waits for ever.
class WorkerState {
 public:
  /// The worker's own state: the processor's registers, its stack from its frame on, and the IPU
  /// registers that the model keeps.
  struct Own {
    IpujaxRange registers, stack, ipu;
  };

  /// Call this when its turn begins.
  void forget();

  /// Whether it waits; called at each block of its code. `memory` gives the hash.
  template <class F>
  bool waits(const Own& own, const F& memory) {
    if (!isKnown(own)) return false;
    const std::uint64_t now = memory();
    const bool same = returned_ && now == memory_;
    returned_ = true;
    memory_ = now;
    return same;
  }
  std::uint64_t memory() const { return memory_; }

 private:
  bool isKnown(const Own& own);
  void keep(const Own& own);

  std::vector<std::byte> kept_;
  const void* frame_ = nullptr;
  std::uint64_t blocks_ = 0;  ///< since the state was kept
  std::uint64_t keeps_ = 0;
  bool returned_ = false;     ///< to the state that was kept
  std::uint64_t memory_ = 0;  ///< then
};

}  // namespace ipujax::engine
