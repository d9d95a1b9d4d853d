#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/collectives/PeerExchange.hpp"
#include "engine/memory/ReplicaBindings.hpp"
#include "engine/run/Walker.hpp"

namespace ipujax::engine {

/// Walks a program for all its replicas. One thread decides what comes next; stretches in which the
/// replicas do not meet run for all of them on the thread pool, a collective step runs once for
/// all. So no replica ever waits for another, and nothing can deadlock (docs/decisions/0012).
/// Stretches that call the host, or copy streams that say so, run on a thread for each replica:
/// callbacks may wait for each other.
///
/// Around a collective all replicas must take the same path: if a condition differs, the run ends
/// with an error. Where no collective is inside, each replica takes its own path.
///
/// Replicas may run in other processes: then only the operands of collectives, and the conditions
/// around them, are exchanged.
class ReplicatedWalker {
 public:
  /// `peers` is null where all replicas run here.
  ReplicatedWalker(const Walker& walker, std::shared_ptr<runtime::Peers> peers);

  /// Runs the program once for the replicas of this process, in the order of their numbers;
  /// `context.replica` is set for each step.
  void run(const RunContext& context, std::span<ReplicaBindings> replicas);

 private:
  struct Run {
    const RunContext& context;
    std::span<ReplicaBindings> replicas;
  };
  struct Facts {
    bool meets = false;       ///< a collective is inside
    bool calls_host = false;  ///< a host callback is inside
    bool streams = false;     ///< a copy of a stream is inside
    double bytes = 0;         ///< touched by its steps in one replica; a guess for open loops
  };
  void find(std::uint32_t node);

  void walk(const Run& run, std::uint32_t node);
  void walkSequence(const Run& run, const Node& node);
  void meet(const Run& run, std::uint64_t step);
  /// Runs nodes in which the replicas do not meet, each replica on its own.
  void walkApart(const Run& run, std::span<const std::uint32_t> nodes) const;
  void walkOne(const Run& run, std::span<const std::uint32_t> nodes, std::uint32_t replica) const;
  void callTogether(const Run& run, std::span<const std::uint32_t> nodes) const;
  std::int64_t agreed(const Run& run, std::uint32_t node);
  std::string meetingPlace(std::uint32_t node) const;

  const Walker& walker_;
  const Image& image_;
  std::vector<const CollectiveKernel*> collectives_;   // by step; null if it is not one
  std::vector<Facts> facts_;                           // by node
  std::vector<std::uint32_t> numbers_;                 // of the replicas here
  std::unique_ptr<PeerExchange> peers_;                // null where all replicas run here
  std::vector<std::unique_ptr<PeerStep>> peer_steps_;  // by step, where there are peers
};

}  // namespace ipujax::engine
