#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "engine/loop/LoopProgram.hpp"
#include "engine/memory/ReplicaBindings.hpp"

namespace ipujax::engine::loop {

/// Assigns places in a block of memory before the block exists; each begins a cache line.
class Layout {
 public:
  std::size_t take(std::size_t bytes) {
    const std::size_t at = bytes_;
    bytes_ += (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kLineBytes = 64;
  std::size_t bytes_ = 0;
};

/// Where the cells of a loop lie in a run's block. Written cells lie there twice: an expression
/// reads one bank and writes the other, so that iterations that should not run can be dropped.
struct CellPlaces {
  std::vector<std::size_t> at[2];  ///< by bank, by cell
};

/// A LoopProgram that is ready to run in a block.
class Stretch {
 public:
  Stretch(const LoopBody& loop, LoopProgram program, const CellPlaces& cells, Layout& layout);

  /// Once per run: writes its tables of pointers into the block, and values that never change in
  /// the loop.
  void begin(const ReplicaBindings& bindings, std::byte* block) const;
  /// Runs from one bank to the other. False if it should not run; then nothing has changed.
  bool run(std::byte* block, int bank) const;

 private:
  struct Row {
    const Windows* windows;
    std::uint64_t step;    ///< operand 0 of this step is its array
    std::size_t index_at;  ///< in the block
    std::size_t row_at;    ///< in the block
    std::size_t bytes;     ///< of the row
    std::size_t copies;    ///< of it in the block
  };
  std::vector<Row> rowsOf(const LoopBody& loop, const std::vector<LoopProgram::Row>& rows,
                          Layout& layout) const;
  void tableOf(const LoopBody& loop, const CellPlaces& cells);

  std::int64_t width_;
  bool asks_;
  expr::ExprEvaluator main_;
  std::unique_ptr<expr::ExprEvaluator> indices_;
  std::vector<Row> loads_, stores_;
  std::size_t num_inputs_;
  std::size_t num_outputs_ = 0;
  std::size_t num_indices_;
  std::size_t go_at_ = 0;
  std::size_t indices_at_ = 0;
  std::size_t main_scratch_ = 0;
  std::size_t indices_scratch_ = 0;
  std::size_t table_at_ = 0;
  std::vector<std::size_t> table_;  ///< places in the block, as `begin` writes them
  std::size_t arrays_at_ = 0;       ///< pointers to the arrays of loads, then of stores
};

}  // namespace ipujax::engine::loop
