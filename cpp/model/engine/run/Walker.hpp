#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "engine/account/TripCounts.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/move/Turn.hpp"
#include "engine/loop/LoopKernel.hpp"
#include "engine/memory/ReplicaBindings.hpp"

namespace ipujax::engine {

/// Runs nodes of a program for one replica. Re-entrant: it keeps only counts of iterations from a
/// run.
class Walker {
 public:
  /// Makes the kernel of every step; `cancelled` may be set by any thread during a run.
  /// `trip_counts` counts every loop of unknown length that ran.
  Walker(const Image& image, const std::atomic<bool>& cancelled, TripCounts& trip_counts);

  void walk(RunContext& context, ReplicaBindings& bindings, std::uint32_t node) const;
  /// The child of a switch that runs for a selector.
  static std::uint32_t chosen(const Node& node, std::int64_t selector);
  void checkCancelled() const;  ///< throws once the run was cancelled
  const Kernel& kernel(std::uint64_t step) const { return *kernels_[step]; }
  const Image& image() const { return image_; }
  TripCounts& tripCounts() const { return trip_counts_; }
  /// Adds the cycles of a step to those of a replica, if the program has cycle stamps.
  void countCycles(ReplicaBindings& bindings, std::uint64_t step) const {
    if (counts_cycles_) bindings.cycles += image_.steps[step].cost.cycles();
  }

 private:
  void makeLoops(std::uint32_t node);  ///< for the outermost loops that can be kernels

  const Image& image_;
  const std::atomic<bool>& cancelled_;
  TripCounts& trip_counts_;
  bool counts_cycles_ = false;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<const TurnKernel*> turns_;                  // by step; null for other kernels
  std::vector<std::unique_ptr<const LoopKernel>> loops_;  // by node; null if steps are walked
};

}  // namespace ipujax::engine
