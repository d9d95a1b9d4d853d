#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "backends/poplar/Container.hpp"
#include "runtime/Program.hpp"

namespace ipujax::poplar_backend {

/// Tracks what a program's argument variables hold between its runs, so that arrays already there
/// are not copied again: arguments of the last run, and results that took over the variable of a
/// donated argument. Belongs to one session; used by the thread that runs it.
class KeptArguments {
 public:
  explicit KeptArguments(const Container& container) : container_(container) {}

  /// Called when another program was loaded or a run has failed.
  void forget() { held_.clear(); }
  /// Called before a run: sets `fresh` to 1 for each of the container's kept inputs whose stream is
  /// to be read, on all replicas or on none.
  void choose(std::span<const runtime::Arrays> replicas);
  void remember(std::span<const runtime::Arrays> replicas);
  const std::vector<std::int32_t>& fresh() const { return fresh_; }

 private:
  const Container& container_;
  std::vector<std::int32_t> fresh_;
  std::vector<std::vector<std::uint64_t>> held_;  ///< by replica and kept input; empty: nothing
};

}  // namespace ipujax::poplar_backend
