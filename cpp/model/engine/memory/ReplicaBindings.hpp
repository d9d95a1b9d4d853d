#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/image/Image.hpp"
#include "engine/memory/DeviceMemory.hpp"

namespace ipujax::engine {

/// Which pointers the steps and conditions of an image need, and where each comes from. One for all
/// replicas of a program.
class PointerTable {
 public:
  explicit PointerTable(const Image& image);

 private:
  friend class ReplicaBindings;
  struct Slot {
    std::uint32_t pointer;
    std::uint32_t buffer;
    std::int64_t offset_bytes;
  };
  void add(const Image& image, const OperandDesc& operand);

  std::uint32_t num_pointers_ = 0;
  std::vector<std::uint32_t> first_;      // by step, and one past the last
  std::vector<std::uint32_t> predicate_;  // by node
  std::vector<std::uint32_t> bound_buffers_;
  std::vector<Slot> fixed_;                 // into the arena or the constants
  std::vector<Slot> bound_;                 // into the caller's arrays
  std::vector<std::vector<Slot>> turning_;  // by buffer, for those whose memory is exchanged
};

/// The caller's arrays for one replica: row-major, on the host, 64-byte aligned.
struct Arrays {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
};

/// One replica's view of a program: every pointer resolved to its own memory.
class ReplicaBindings {
 public:
  ReplicaBindings(const Image& image, const PointerTable& table,
                  std::shared_ptr<DeviceMemory> memory);

  /// Once per run: binds the current arena and the caller's arrays.
  void bind(const Arrays& arrays);
  std::span<std::byte* const> operands(std::uint64_t step) const {
    const auto first = table_->first_[step];
    return {pointers_.data() + first, table_->first_[step + 1] - first};
  }
  /// Swaps the memory of two operands of an engine.turn, which are whole buffers of the arena and
  /// of the same size, for all steps and runs from now on.
  void exchange(std::uint64_t step, std::size_t operand, std::size_t other);
  std::byte* predicatePlace(std::uint32_t node) const {
    return pointers_[table_->predicate_[node]];
  }
  bool predicate(std::uint32_t node) const;
  std::int64_t selector(std::uint32_t node) const;

  double cycles = 0;  ///< of this run so far, if the walker counts them

 private:
  void bindArena();
  void point(const PointerTable::Slot& slot) {
    pointers_[slot.pointer] = bases_[slot.buffer] + slot.offset_bytes;
  }

  const Image* image_;
  const PointerTable* table_;
  std::shared_ptr<DeviceMemory> memory_;
  std::byte* arena_ = nullptr;
  std::vector<std::byte*> bases_;  // by buffer
  std::vector<std::byte*> pointers_;
};

}  // namespace ipujax::engine
