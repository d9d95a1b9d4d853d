#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/account/TripCounts.hpp"
#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/memory/ReplicaBindings.hpp"

namespace ipujax::engine {

/// What a loop needs from the run that it is part of.
struct LoopRun {
  RunContext& context;
  const ReplicaBindings& bindings;
  const std::atomic<bool>& cancelled;
  TripCounts& trip_counts;  ///< counts every loop of unknown length that ran
  bool isCancelled() const { return cancelled.load(std::memory_order_relaxed); }
};

/// By step.
using StepKernels = std::span<const std::unique_ptr<Kernel>>;

/// A whole loop as one kernel, for loops whose steps take as long to start as to run
/// (docs/decisions/0017). Leaves in memory, bit for bit, what the steps would have left, except for
/// the bits of a NaN computed from two. Re-entrant.
class LoopKernel {
 public:
  virtual ~LoopKernel() = default;

  /// Stops early once the run is cancelled; its results are lost then.
  virtual void run(LoopRun& run) const = 0;
};

}  // namespace ipujax::engine
