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

/// What a loop needs of the run that it is part of.
struct LoopRun {
  RunContext& context;
  const ReplicaBindings& bindings;
  const std::atomic<bool>& cancelled;
  TripCounts& trip_counts;  ///< hears of every loop of unknown length that ran
  bool isCancelled() const { return cancelled.load(std::memory_order_relaxed); }
};

/// By step.
using StepKernels = std::span<const std::unique_ptr<Kernel>>;

/// A whole loop as one kernel, where starting its steps takes as long as what they do
/// (docs/decisions/0017). Memory holds afterwards, bit for bit, what the steps would have left, but
/// for the bits of a NaN made of two. Re-entrant.
class LoopKernel {
 public:
  virtual ~LoopKernel() = default;

  /// Stops early, with what it has done lost, once the run is cancelled.
  virtual void run(LoopRun& run) const = 0;
};

}  // namespace ipujax::engine
