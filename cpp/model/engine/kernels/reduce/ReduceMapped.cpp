#include <algorithm>
#include <cstdlib>
#include <vector>

#include "engine/Workspace.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/reduce/ReduceFinish.hpp"
#include "engine/kernels/reduce/ReduceLoops.hpp"
#include "engine/simd/VectorOps.hpp"

/// Reduces the results of an elementwise program: computes and reduces a block that the first-level
/// cache holds before the next one. engine/build/Reductions.cpp makes these steps.
///
/// Elements are combined in the order of a StridedReduce of them all, so that running the two steps
/// as one changes no bit of the result.
namespace ipujax::engine::reduction {
namespace {

using expr::ExprEvaluator;
using expr::ExprProgram;

constexpr std::int64_t kElements = kPieceElements;  // of one block
constexpr std::int64_t kTaskElements = 16384;       // worth a thread
constexpr std::int64_t kFewestRows = 8;  // of columns: as many as their loops take at once

/// Inputs that are constant along the columns.
std::vector<bool> stillOf(const Attributes::Integers& strides) {
  std::vector<bool> still;
  for (std::size_t i = 1; i < strides.size(); i += 2) still.push_back(strides[i] == 0);
  return still;
}

class MappedReduce final : public Kernel {
 public:
  MappedReduce(const StepDesc& step, const ExprProgram& program)
      : inputs_(program.numInputs()),
        rows_(step.attributes.integer("rows")),
        columns_(step.attributes.integer("columns")),
        strides_(step.attributes.integers("strides")),
        rows_vanish_(step.attributes.integer("rows_vanish") != 0),
        bytes_(static_cast<std::int64_t>(sizeOf(program.outputTypes()[0]))),
        evaluator_(program, stillOf(strides_)),
        reducer_(static_cast<Reducer>(step.attributes.integer("reducer"))),
        loops_(*loopsFor(reducer_, program.outputTypes()[0])),
        acc_bytes_(static_cast<std::int64_t>(sizeOf(loops_.acc))),
        rounds_(isRoundingSum(reducer_, loops_)),
        finish_(step, inputs_, loops_) {
    for (std::size_t i = 0; i < inputs_; ++i) {
      input_bytes_.push_back(static_cast<std::int64_t>(sizeOf(step.operands[i].type)));
      const bool dense = strides_[2 * i] == columns_ && strides_[2 * i + 1] == 1;
      const bool still = strides_[2 * i] == 0 && strides_[2 * i + 1] == 0;
      rows_are_one_run_ = rows_are_one_run_ && (dense || still);
    }
  }

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    finish_.run(rows_vanish_ ? columns_ : rows_, pointers, [&](std::byte* acc) {
      if (rows_vanish_)
        reduceRows(context.pool, pointers, acc);
      else if (columns_ <= kElements)
        reduceShortRows(context.pool, pointers, acc);
      else
        reduceLongRows(context.pool, pointers, acc);
    });
  }

 private:
  /// Elements from one row of a block to the next. Only whole rows are contiguous, as in memory:
  /// loops over columns take such rows together.
  std::int64_t strideOf(std::int64_t columns) const {
    return columns == columns_ ? columns : std::max(columns, kColumnBlock);
  }

  /// Bytes of a block of rows x columns results.
  std::int64_t bytesOf(std::int64_t rows, std::int64_t columns) const {
    return rows * strideOf(columns) * static_cast<std::int64_t>(bytes_);
  }

  /// Computes the program's results of rows x columns elements into `block`, row by row,
  /// strideOf(columns) apart.
  const std::byte* compute(std::span<std::byte* const> pointers, std::int64_t row,
                           std::int64_t rows, std::int64_t column, std::int64_t columns,
                           std::byte* block) const {
    const std::int64_t row_stride = strideOf(columns);
    const bool at_once = rows_are_one_run_ && columns == columns_;
    const std::int64_t calls = at_once ? 1 : rows;
    const std::int64_t n = at_once ? rows * columns : columns;
    constexpr std::size_t kFew = 48;
    const std::byte* few[kFew];
    std::vector<const std::byte*> many(inputs_ > kFew ? inputs_ : 0);
    const std::byte** at = inputs_ > kFew ? many.data() : few;
    for (std::int64_t call = 0; call < calls; ++call) {
      for (std::size_t i = 0; i < inputs_; ++i) {
        const std::int64_t offset = (row + call) * strides_[2 * i] + column * strides_[2 * i + 1];
        at[i] = pointers[i] + offset * input_bytes_[i];
      }
      std::byte* out = block + call * row_stride * bytes_;
      evaluator_.run({at, inputs_}, {&out, 1}, n);
    }
    return block;
  }

  void fillIdentity(std::byte* acc, std::int64_t n) const {
    simd::fill(acc, &loops_.identity, static_cast<std::size_t>(acc_bytes_), n);
  }

  void reduceShortRows(ThreadPool& pool, std::span<std::byte* const> pointers,
                       std::byte* acc) const {
    const std::int64_t group = kElements / columns_;
    const std::int64_t units = (rows_ + group - 1) / group;
    pool.parallelFor(units, kTaskElements / (group * columns_) + 1,
                     [&](std::int64_t begin, std::int64_t end) {
                       Workspace workspace;
                       std::byte* block = workspace.get(bytesOf(std::min(group, rows_), columns_));
                       for (std::int64_t unit = begin; unit < end; ++unit) {
                         const std::int64_t row = unit * group;
                         const std::int64_t rows = std::min(group, rows_ - row);
                         const std::byte* x = compute(pointers, row, rows, 0, columns_, block);
                         loops_.rows(x, columns_, rows, columns_, acc + row * acc_bytes_, 1);
                       }
                     });
  }

  void reduceLongRows(ThreadPool& pool, std::span<std::byte* const> pointers,
                      std::byte* acc) const {
    const std::int64_t pieces = (columns_ + kElements - 1) / kElements;
    Workspace shared;
    std::byte* partials = shared.get(rows_ * pieces * acc_bytes_);
    fillIdentity(partials, rows_ * pieces);
    pool.parallelFor(rows_ * pieces, kTaskElements / kElements,
                     [&](std::int64_t begin, std::int64_t end) {
                       Workspace workspace;
                       std::byte* block = workspace.get(bytesOf(1, std::min(kElements, columns_)));
                       for (std::int64_t unit = begin; unit < end; ++unit) {
                         const std::int64_t column = unit % pieces * kElements;
                         const std::int64_t n = std::min(kElements, columns_ - column);
                         const std::byte* x = compute(pointers, unit / pieces, 1, column, n, block);
                         loops_.row(x, n, partials + unit * acc_bytes_);
                       }
                     });
    for (std::int64_t row = 0; row < rows_; ++row) {
      std::byte* parts = partials + row * pieces * acc_bytes_;
      mergeParts(loops_, parts, pieces, 1);
      std::memcpy(acc + row * acc_bytes_, parts, static_cast<std::size_t>(acc_bytes_));
    }
  }

  void reduceRows(ThreadPool& pool, std::span<std::byte* const> pointers, std::byte* acc) const {
    const std::int64_t blocks = (columns_ + kColumnBlock - 1) / kColumnBlock;
    const Parts parts = partsOfColumns(blocks, rows_ * std::min(columns_, kColumnBlock), rows_);
    Workspace workspace;
    std::byte* partials =
        parts.count == 1 ? acc : workspace.get(parts.count * columns_ * acc_bytes_);
    pool.parallelFor(parts.count * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t part = unit / blocks;
        const std::int64_t column = unit % blocks * kColumnBlock;
        reduceColumns(pointers, part * parts.size, std::min((part + 1) * parts.size, rows_), column,
                      partials + (part * columns_ + column) * acc_bytes_);
      }
    });
    if (parts.count == 1) return;
    mergeParts(loops_, partials, parts.count, columns_);
    std::memcpy(acc, partials, static_cast<std::size_t>(columns_ * acc_bytes_));
  }

  /// Reduces rows [begin, end) of up to kColumnBlock columns into their accumulators.
  void reduceColumns(std::span<std::byte* const> pointers, std::int64_t begin, std::int64_t end,
                     std::int64_t column, std::byte* total) const {
    const std::int64_t columns = std::min(kColumnBlock, columns_ - column);
    const std::int64_t wanted = kElements / columns / kFewestRows * kFewestRows;
    const std::int64_t chunk = std::clamp(wanted, kFewestRows, kFoldRows);
    const bool folds = rounds_ && end - begin > kFoldRows;
    Workspace workspace;
    std::byte* sum = folds ? workspace.get(kColumnBlock * 8) : total;
    std::byte* block = workspace.get(bytesOf(std::min(chunk, end - begin), columns));
    fillIdentity(total, columns);
    if (folds) fillIdentity(sum, columns);
    std::int64_t next_fold = begin + kFoldRows;
    for (std::int64_t row = begin; row < end;) {
      const std::int64_t rows = std::min({chunk, end - row, folds ? next_fold - row : chunk});
      const std::byte* x = compute(pointers, row, rows, column, columns, block);
      loops_.column(x, strideOf(columns), rows, sum, columns);
      row += rows;
      if (!folds || row < next_fold) continue;
      loops_.merge(sum, total, columns);
      fillIdentity(sum, columns);
      next_fold += kFoldRows;
    }
    if (folds) loops_.merge(sum, total, columns);
  }

  std::size_t inputs_;
  std::int64_t rows_;
  std::int64_t columns_;
  Attributes::Integers strides_;  ///< of each input: along the rows, along the columns
  bool rows_vanish_;
  std::int64_t bytes_;  ///< of a computed element
  ExprEvaluator evaluator_;
  Reducer reducer_;
  const Loops& loops_;
  std::int64_t acc_bytes_;
  bool rounds_;
  Finish finish_;
  std::vector<std::int64_t> input_bytes_;
  bool rows_are_one_run_ = true;
};

std::unique_ptr<Kernel> makeMappedReduce(const StepDesc& step) {
  const auto program = ExprProgram::fromIntegers(step.attributes.integers("expr"));
  return std::make_unique<MappedReduce>(step, program);
}

/// The elements that an operand has around index 0: those before it, and those from it on.
struct Reach {
  std::int64_t low = 0;
  std::int64_t high = 0;
  void add(std::int64_t n, std::int64_t stride) { (stride < 0 ? low : high) += (n - 1) * stride; }
};

void checkMappedInput(const StepCheck& check, const OperandCheck& input, std::int64_t rows,
                      std::int64_t columns, std::int64_t row_stride, std::int64_t column_stride) {
  check.need(input->numElements() > 0, "inputs that have elements");
  // Programs run along the columns.
  check.need(column_stride == 0 || column_stride == 1, "inputs dense along the columns");
  Reach has;
  Reach uses;
  for (std::size_t d = 0; d < input->shape.size(); ++d) has.add(input->shape[d], input->strides[d]);
  check.need(std::abs(row_stride) <= StepCheck::kMostElements, "rows that lie closer");
  uses.add(rows, row_stride);
  uses.add(columns, column_stride);
  check.need(has.low <= uses.low && uses.high <= has.high, "strides within its inputs");
}

void checkMappedReduce(StepCheck& check) {
  const auto program = check.program("expr");
  const std::size_t inputs = program.numInputs();
  check.need(program.numOutputs() == 1, "an expression of one output");
  const std::int64_t rows = check.integer("rows", 1, StepCheck::kMostElements);
  const std::int64_t columns = check.integer("columns", 1, StepCheck::kMostElements / rows);
  const auto& strides = check.integers("strides", 2 * inputs);
  for (std::size_t i = 0; i < inputs; ++i) {
    checkMappedInput(check, check.read(i).isOf(program.inputTypes()[i]), rows, columns,
                     strides[2 * i], strides[2 * i + 1]);
  }
  const Loops& loops = checkReducer(check, program.outputTypes()[0]);
  Finish::check(check, inputs, loops, check.flag("rows_vanish") ? columns : rows);
}
const RegisterKernel kMappedReduce{"engine.reduce_mapped", makeMappedReduce, checkMappedReduce};

}  // namespace
}  // namespace ipujax::engine::reduction
