#include "engine/kernels/reduce/ReduceLoops.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/LoopNest.hpp"
#include "engine/Workspace.hpp"
#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine::reduction {

namespace {

constexpr std::int64_t kPartElements = 32768;
constexpr std::int64_t kMaxParts = 32;
constexpr std::int64_t kTaskElements = 16384;

}  // namespace

Odometer::Odometer(std::span<const LoopDim> dims, std::int64_t position) : dims_(dims) {
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (position == 0) {  // the usual case: divisions are slow
      index_[d] = 0;
      continue;
    }
    index_[d] = position % dims[d].n;
    position /= dims[d].n;
    in += index_[d] * dims[d].in;
    out += index_[d] * dims[d].out;
  }
}

void Odometer::next() {
  for (std::size_t d = dims_.size(); d-- > 0;) {
    const LoopDim& dim = dims_[d];
    in += dim.in;
    out += dim.out;
    if (++index_[d] < dim.n) return;
    in -= dim.n * dim.in;
    out -= dim.n * dim.out;
    index_[d] = 0;
  }
}

std::int64_t volumeOf(std::span<const LoopDim> dims) {
  std::int64_t n = 1;
  for (const LoopDim& d : dims) n *= d.n;
  return n;
}

Parts partsOfColumns(std::int64_t tasks, std::int64_t task_elements, std::int64_t total) {
  if (tasks >= 8 || task_elements <= 2 * kPartElements) return {total, 1};
  const std::int64_t count =
      std::min<std::int64_t>({kMaxParts, task_elements / kPartElements, total});
  const std::int64_t size = (total + count - 1) / count;
  return {size, (total + size - 1) / size};
}

Parts partsOfRows(std::int64_t rows, std::int64_t n) {
  if (rows >= 8 || n <= 2 * kPartElements) return {n, 1};
  std::int64_t size = kPartElements;
  static_assert(kPartElements / kPieceElements * kPieceElements == kPartElements &&
                std::has_single_bit(static_cast<std::uint64_t>(kPartElements / kPieceElements)));
  while (size * kMaxParts < n) size *= 2;
  return {size, (n + size - 1) / size};
}

void mergeParts(const Loops& loops, std::byte* partials, std::int64_t count, std::int64_t n) {
  const auto bytes = n * static_cast<std::int64_t>(sizeOf(loops.acc));
  for (std::int64_t step = 1; step < count; step *= 2) {
    for (std::int64_t p = 0; p + step < count; p += 2 * step)
      loops.merge(partials + (p + step) * bytes, partials + p * bytes, n);
  }
}

void Odometer::advance(std::int64_t count) {
  if (dims_.empty()) return;
  in += (count - 1) * dims_.back().in;
  out += (count - 1) * dims_.back().out;
  index_[dims_.size() - 1] += count - 1;
  next();
}

void simplifyLoops(std::vector<LoopDim>& dims, std::int64_t& in_offset, std::int64_t& out_offset) {
  for (LoopDim& d : dims) {
    if (d.in >= 0) continue;
    in_offset += (d.n - 1) * d.in;
    out_offset += (d.n - 1) * d.out;
    d.in = -d.in;
    d.out = -d.out;
  }
  std::stable_sort(dims.begin(), dims.end(), [](const LoopDim& a, const LoopDim& b) {
    return a.in != b.in ? a.in > b.in : std::abs(a.out) > std::abs(b.out);
  });
  std::vector<LoopDim> merged;
  for (const LoopDim& d : dims) appendLoop<&LoopDim::n, &LoopDim::in, &LoopDim::out>(merged, d);
  dims = std::move(merged);
}

StridedReduce::StridedReduce(const Loops& loops, bool rounds, ElementType input,
                             std::span<const std::int64_t> shape,
                             std::span<const std::int64_t> strides,
                             std::span<const std::int64_t> reduced_dims)
    : loops_(&loops), rounds_(rounds), in_bytes_(sizeOf(input)), acc_bytes_(sizeOf(loops.acc)) {
  std::vector<LoopDim> kept;
  std::vector<LoopDim> reduced;
  for (std::size_t d = shape.size(); d-- > 0;) {
    const bool is_reduced =
        std::count(reduced_dims.begin(), reduced_dims.end(), static_cast<std::int64_t>(d)) > 0;
    if (is_reduced) {
      reduced.insert(reduced.begin(), {shape[d], strides[d], 0});
    } else {
      kept.insert(kept.begin(), {shape[d], strides[d], outputs_});
      outputs_ *= shape[d];
    }
  }
  reduced_total_ = volumeOf(reduced);
  if (outputs_ == 0 || reduced_total_ == 0) return;
  simplifyLoops(kept, in_offset_, out_offset_);
  simplifyLoops(reduced, in_offset_, out_offset_);
  plan(std::move(kept), std::move(reduced));
}

/// For short contiguous runs, one per output, inside further reduced loops: reduces these loops
/// first, with the runs as columns, and then each run on its own.
bool StridedReduce::takeRunsAsColumns(std::vector<LoopDim>& kept, std::vector<LoopDim>& reduced) {
  constexpr std::int64_t kLongestRun = 64;
  constexpr std::int64_t kFewestRows = 8;
  if (kept.empty() || reduced.size() < 2) return false;
  const LoopDim outputs = kept.back();
  const LoopDim run = reduced.back();
  if (run.in != 1 || run.n > kLongestRun || outputs.in != run.n) return false;
  if (outputs.n * run.n > kColumnBlock || reduced_total_ / run.n < kFewestRows) return false;
  group_ = run.n;
  groups_ = {outputs.n, run.n, outputs.out};
  reduced_total_ /= run.n;
  kept.back() = {outputs.n * run.n, 1, 0};
  reduced.pop_back();
  return true;
}

void StridedReduce::plan(std::vector<LoopDim> kept, std::vector<LoopDim> reduced) {
  const LoopDim none{};
  const bool runs_are_columns = takeRunsAsColumns(kept, reduced);
  run_ = reduced.empty() ? none : reduced.back();
  const LoopDim column = kept.empty() ? none : kept.back();
  const bool few_reduced = reduced_total_ < 16;
  columns_ =
      runs_are_columns || (!kept.empty() && column.in > 0 &&
                           (reduced.empty() || run_.in == 0 || column.in < run_.in || few_reduced));
  if (!reduced.empty()) reduced.pop_back();
  if (columns_) kept.pop_back();
  inner_ = columns_ ? column : run_;
  tasks_ = std::move(kept);
  reduced_ = std::move(reduced);
  if (columns_) column_blocks_ = (inner_.n + kColumnBlock - 1) / kColumnBlock;
  const bool dense_rows = !columns_ && reduced_.empty() && (run_.in == 1 || run_.n == 1);
  row_batches_ = dense_rows && run_.n <= kPieceElements;
  const std::int64_t tasks = volumeOf(tasks_) * column_blocks_;
  const std::int64_t task_elements =
      reduced_total_ * (columns_ ? std::min(inner_.n, kColumnBlock) : 1);
  parts_ = dense_rows ? partsOfRows(tasks, run_.n)
                      : partsOfColumns(tasks, task_elements, reduced_total_);
}

void StridedReduce::fillIdentity(std::byte* acc, std::int64_t n) const {
  simd::fill(acc, &loops_->identity, acc_bytes_, n);
}

void StridedReduce::run(ThreadPool& pool, const std::byte* in, std::byte* result) const {
  if (outputs_ == 0) return;
  if (reduced_total_ == 0) return fillIdentity(result, outputs_);
  in += in_offset_ * static_cast<std::int64_t>(in_bytes_);
  if (parts_.count == 1) return runWhole(pool, in, result);
  const std::size_t bytes = static_cast<std::size_t>(outputs_) * acc_bytes_;
  Workspace workspace;
  std::byte* partials = workspace.get(static_cast<std::int64_t>(bytes) * parts_.count);
  const std::int64_t tasks = volumeOf(tasks_) * column_blocks_;
  pool.parallelFor(parts_.count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      runTasks(in, partials + p * bytes, p * parts_.size,
               std::min((p + 1) * parts_.size, reduced_total_), 0, tasks);
    }
  });
  mergeParts(*loops_, partials, parts_.count, outputs_);
  std::memcpy(result, partials, bytes);
}

void StridedReduce::runWhole(ThreadPool& pool, const std::byte* in, std::byte* result) const {
  const std::int64_t tasks = volumeOf(tasks_) * column_blocks_;
  const std::int64_t task_elements =
      reduced_total_ * (columns_ ? std::min(inner_.n, kColumnBlock) : 1);
  const std::int64_t grain = std::max<std::int64_t>(1, kTaskElements / (task_elements + 8));
  pool.parallelFor(tasks, grain, [&](std::int64_t first, std::int64_t last) {
    runTasks(in, result, 0, reduced_total_, first, last);
  });
}

void StridedReduce::runTasks(const std::byte* in, std::byte* result, std::int64_t part_begin,
                             std::int64_t part_end, std::int64_t begin, std::int64_t end) const {
  if (begin >= end) return;
  Odometer at(tasks_, column_blocks_ == 1 ? begin : begin / column_blocks_);
  const auto in_bytes = static_cast<std::int64_t>(in_bytes_);
  const auto acc_bytes = static_cast<std::int64_t>(acc_bytes_);
  for (std::int64_t task = begin; task < end; ++task) {
    const std::byte* x = in + at.in * in_bytes;
    if (row_batches_) {
      // As many outputs as the innermost kept loop has from here on.
      const LoopDim kept = tasks_.empty() ? LoopDim{} : tasks_.back();
      const std::int64_t count = std::min(at.left(), end - task);
      loops_->rows(x, kept.in, count, run_.n, result + (at.out + out_offset_) * acc_bytes,
                   kept.out);
      at.advance(count);
      task += count - 1;
      continue;
    }
    std::byte* out = result + (at.out + out_offset_) * acc_bytes;
    const std::int64_t block = column_blocks_ == 1 ? 0 : task % column_blocks_;
    if (columns_) {
      const std::int64_t c = block * kColumnBlock;
      columnTask(x + c * inner_.in * in_bytes, out + c * inner_.out * acc_bytes,
                 std::min(kColumnBlock, inner_.n - c), part_begin, part_end);
    } else {
      rowTask(x, out, part_begin, part_end);
    }
    if (block + 1 == column_blocks_) at.next();
  }
}

void StridedReduce::rowTask(const std::byte* in, std::byte* result, std::int64_t begin,
                            std::int64_t end) const {
  const auto in_bytes = static_cast<std::int64_t>(in_bytes_);
  std::uint64_t total = loops_->identity;
  std::uint64_t acc = loops_->identity;
  std::int64_t calls = 0;
  Odometer at(reduced_, begin / run_.n);
  for (std::int64_t t = begin; t < end; at.next()) {
    const std::int64_t first = t % run_.n;
    const std::int64_t n = std::min(run_.n - first, end - t);
    const std::byte* x = in + (at.in + first * run_.in) * in_bytes;
    if (run_.in == 1 || n == 1) {
      loops_->row(x, n, &acc);
    } else if (n < 16) {
      for (std::int64_t i = 0; i < n; ++i) loops_->row(x + i * run_.in * in_bytes, 1, &acc);
    } else {
      constexpr std::int64_t kGather = 4096;
      Workspace workspace;
      std::byte* block = workspace.get(kGather * 8);
      for (std::int64_t i = 0; i < n; i += kGather) {
        const std::int64_t size = std::min(kGather, n - i);
        simd::gatherStrided(x + i * run_.in * in_bytes, run_.in, block, in_bytes_, size);
        loops_->row(block, size, &acc);
      }
    }
    t += n;
    if (rounds_ && ++calls % kFoldRows == 0) {
      loops_->merge(&acc, &total, 1);
      acc = loops_->identity;
    }
  }
  loops_->merge(&acc, &total, 1);
  std::memcpy(result, &total, acc_bytes_);
}

void StridedReduce::columnTask(const std::byte* in, std::byte* result, std::int64_t columns,
                               std::int64_t begin, std::int64_t end) const {
  const auto in_bytes = static_cast<std::int64_t>(in_bytes_);
  Workspace workspace;
  std::byte* scratch = workspace.get(2 * kColumnBlock * 8);
  std::byte* total = inner_.out == 1 ? result : scratch;
  const bool folds = rounds_ && end - begin > kFoldRows;
  std::byte* acc = folds ? scratch + kColumnBlock * 8 : total;
  fillIdentity(total, columns);
  if (folds) fillIdentity(acc, columns);
  Odometer at(reduced_, begin / run_.n);
  std::int64_t since_fold = 0;
  std::int64_t row = begin % run_.n;
  for (std::int64_t t = begin; t < end;) {
    std::int64_t rows = std::min(run_.n - row, end - t);
    if (folds) rows = std::min(rows, kFoldRows - since_fold);
    const std::byte* x = in + (at.in + row * run_.in) * in_bytes;
    if (inner_.in == 1) {
      loops_->column(x, run_.in, rows, acc, columns);
    } else {
      for (std::int64_t r = 0; r < rows; ++r) {
        loops_->accumulate(x + r * run_.in * in_bytes, inner_.in, acc, columns);
      }
    }
    t += rows;
    row += rows;
    since_fold += rows;
    if (row == run_.n) {
      row = 0;
      at.next();
    }
    if (folds && since_fold == kFoldRows) {
      loops_->merge(acc, total, columns);
      fillIdentity(acc, columns);
      since_fold = 0;
    }
  }
  if (folds) loops_->merge(acc, total, columns);
  for (std::int64_t g = 0; group_ > 1 && g < groups_.n; ++g) {
    std::byte* first = total + g * group_ * static_cast<std::int64_t>(acc_bytes_);
    mergeParts(*loops_, first, group_, 1);
    std::memcpy(result + g * groups_.out * static_cast<std::int64_t>(acc_bytes_), first,
                acc_bytes_);
  }
  if (group_ == 1 && total == scratch)
    simd::scatterStrided(total, result, inner_.out, acc_bytes_, columns);
}

}  // namespace ipujax::engine::reduction
