#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/Rank.hpp"
#include "engine/ThreadPool.hpp"
#include "engine/kernels/reduce/ReduceKernels.hpp"

namespace ipujax::engine::reduction {

/// Extent and element strides of one loop.
struct LoopDim {
  std::int64_t n = 1;
  std::int64_t in = 0;
  std::int64_t out = 0;
};

/// Walks nested loops (outermost first) and keeps the two element offsets.
class Odometer {
 public:
  Odometer() = default;
  Odometer(std::span<const LoopDim> dims, std::int64_t position);
  void next();
  /// `count` steps that stay within the innermost loop, or end just past it.
  void advance(std::int64_t count);
  /// Steps to the end of the innermost loop.
  std::int64_t left() const {
    return dims_.empty() ? 1 : dims_.back().n - index_[dims_.size() - 1];
  }
  std::int64_t in = 0;
  std::int64_t out = 0;

 private:
  std::span<const LoopDim> dims_;
  std::int64_t index_[kMostRank];  ///< as many as there are loops
};

/// Merges loops that form one run and orders them by decreasing input stride; input strides become
/// positive (out_offset and in_offset move to the new first element).
void simplifyLoops(std::vector<LoopDim>& dims, std::int64_t& in_offset, std::int64_t& out_offset);
std::int64_t volumeOf(std::span<const LoopDim> dims);

constexpr std::int64_t kPieceElements = 4096;  ///< of a dense row that are combined at a time
constexpr std::int64_t kColumnBlock = 1024;    ///< accumulators of one task: fit the L1 cache
constexpr std::int64_t kFoldRows = 128;        ///< rows summed one after the other before folding

/// A reduced range cut into parts for threads; all but the last have `size`.
struct Parts {
  std::int64_t size = 1;
  std::int64_t count = 1;
};
/// Parts of a reduction of `total` rows to columns, where each of `tasks` takes task_elements.
Parts partsOfColumns(std::int64_t tasks, std::int64_t task_elements, std::int64_t total);
/// Parts of dense rows of n elements: whole subtrees of the pairwise sum, so that merging the parts
/// gives the same sum.
Parts partsOfRows(std::int64_t rows, std::int64_t n);
/// Combines `count` partial results of n accumulators into the first: neighbours first, so that
/// errors of sums grow with the logarithm of their number.
void mergeParts(const Loops& loops, std::byte* partials, std::int64_t count, std::int64_t n);

/// One reducer over some dimensions of a strided view, planned once. The result is an array of
/// accumulators, row-major over the kept dimensions. The order of combination depends on the shape
/// and strides only, not on the number of threads. ReduceMapped.cpp computes the same, bit for bit.
class StridedReduce {
 public:
  StridedReduce(const Loops& loops, bool rounds, ElementType input,
                std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                std::span<const std::int64_t> reduced_dims);
  std::int64_t numOutputs() const { return outputs_; }
  /// result: numOutputs() accumulators; fully written.
  void run(ThreadPool& pool, const std::byte* in, std::byte* result) const;

 private:
  bool takeRunsAsColumns(std::vector<LoopDim>& kept, std::vector<LoopDim>& reduced);
  void plan(std::vector<LoopDim> kept, std::vector<LoopDim> reduced);
  void runWhole(ThreadPool& pool, const std::byte* in, std::byte* result) const;
  void runTasks(const std::byte* in, std::byte* result, std::int64_t part_begin,
                std::int64_t part_end, std::int64_t begin, std::int64_t end) const;
  void rowTask(const std::byte* in, std::byte* acc, std::int64_t begin, std::int64_t end) const;
  void columnTask(const std::byte* in, std::byte* result, std::int64_t columns, std::int64_t begin,
                  std::int64_t end) const;
  void fillIdentity(std::byte* acc, std::int64_t n) const;

  const Loops* loops_;
  bool rounds_;
  std::size_t in_bytes_;
  std::size_t acc_bytes_;
  std::int64_t outputs_ = 1;
  std::int64_t in_offset_ = 0;
  std::int64_t out_offset_ = 0;
  bool columns_ = false;          ///< the innermost loop is a kept dimension
  bool row_batches_ = false;      ///< one contiguous run per output: many outputs per call
  LoopDim inner_;                 ///< columns, or the reduced run of one output
  LoopDim run_;                   ///< the innermost reduced loop: rows, or the same as inner_
  std::vector<LoopDim> tasks_;    ///< kept loops outside
  std::vector<LoopDim> reduced_;  ///< reduced loops outside run_
  std::int64_t group_ = 1;        ///< columns that finally become one output
  LoopDim groups_;                ///< from one of these outputs to the next
  std::int64_t column_blocks_ = 1;
  std::int64_t reduced_total_ = 1;  ///< volume of reduced_ times run_.n
  Parts parts_;                     ///< of the reduced range
};

}  // namespace ipujax::engine::reduction
