#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/Image.hpp"
#include "engine/ReplicaBindings.hpp"

namespace ipujax::engine {

/// A whole loop as one kernel, where its steps are expressions of few elements: some iterations at
/// a time are one expression, whose values stay in registers and in a block of a few lines
/// (docs/decisions/0017). Memory holds afterwards, bit for bit, what the steps would have left, but
/// for the bits of a NaN made of two. Re-entrant.
class LoopKernel {
 public:
  /// The kernel of a kRepeat or kRepeatWhile node, or null where its loop is not of this kind.
  static std::unique_ptr<const LoopKernel> make(const Image& image, std::uint32_t node);
  ~LoopKernel();

  /// Returns the iterations made. Stops early, with what it has done lost, once `cancelled` is
  /// true.
  std::uint64_t run(const ReplicaBindings& bindings, const std::atomic<bool>& cancelled) const;

 private:
  struct Impl;
  explicit LoopKernel(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace ipujax::engine
