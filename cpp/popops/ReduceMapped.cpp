#include <algorithm>
#include <cstdlib>
#include <vector>

#include "engine/Kernel.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/simd/VectorOps.hpp"
#include "popops/ReduceFinish.hpp"
#include "popops/ReduceLoops.hpp"

/// A reduction of what an elementwise program computes: a block that the first-level cache holds is
/// computed and reduced before the next one. engine/build/Reductions.cpp makes these steps.
namespace ipujax::engine::reduction {
namespace {

using expr::ExprEvaluator;
using expr::ExprProgram;

constexpr std::int64_t kElements = 4096;       // of one block
constexpr std::int64_t kTaskElements = 16384;  // worth a thread
constexpr std::int64_t kColumns = 2048;        // accumulators of one task
constexpr std::int64_t kFoldRows = 128;        // rows summed one after the other before folding
constexpr std::int64_t kPartElements = 65536;
constexpr std::int64_t kMaxParts = 32;

/// Inputs that stand still along the columns.
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
  /// The program's results of rows x columns elements, row by row.
  const std::byte* compute(std::span<std::byte* const> pointers, std::int64_t row,
                           std::int64_t rows, std::int64_t column, std::int64_t columns) const {
    std::byte* block =
        threadScratch(Scratch::kBlock, static_cast<std::size_t>(rows * columns * bytes_));
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
      std::byte* out = block + call * columns * bytes_;
      evaluator_.run({at, inputs_}, {&out, 1}, n);
    }
    return block;
  }

  void fillIdentity(std::byte* acc, std::int64_t n) const {
    simd::fill(acc, &loops_.identity, static_cast<std::size_t>(acc_bytes_), n);
  }

  /// Neighbours first, so that errors of sums grow with the logarithm of `parts`.
  void mergeParts(std::byte* partials, std::int64_t parts, std::int64_t n) const {
    for (std::int64_t step = 1; step < parts; step *= 2) {
      for (std::int64_t p = 0; p + step < parts; p += 2 * step) {
        loops_.merge(partials + (p + step) * n * acc_bytes_, partials + p * n * acc_bytes_, n);
      }
    }
  }

  void reduceShortRows(ThreadPool& pool, std::span<std::byte* const> pointers,
                       std::byte* acc) const {
    const std::int64_t group = kElements / columns_;
    const std::int64_t units = (rows_ + group - 1) / group;
    pool.parallelFor(units, kTaskElements / (group * columns_) + 1,
                     [&](std::int64_t begin, std::int64_t end) {
                       for (std::int64_t unit = begin; unit < end; ++unit) {
                         const std::int64_t row = unit * group;
                         const std::int64_t rows = std::min(group, rows_ - row);
                         const std::byte* x = compute(pointers, row, rows, 0, columns_);
                         reduceBlock(x, rows, acc + row * acc_bytes_);
                       }
                     });
  }

  void reduceBlock(const std::byte* x, std::int64_t rows, std::byte* acc) const {
    constexpr std::int64_t kMostOfRows = 4096;
    if (columns_ <= kMostOfRows) return loops_.rows(x, columns_, rows, columns_, acc, 1);
    fillIdentity(acc, rows);
    for (std::int64_t r = 0; r < rows; ++r)
      loops_.row(x + r * columns_ * bytes_, columns_, acc + r * acc_bytes_);
  }

  void reduceLongRows(ThreadPool& pool, std::span<std::byte* const> pointers,
                      std::byte* acc) const {
    const std::int64_t pieces = (columns_ + kElements - 1) / kElements;
    std::byte* partials =
        threadScratch(Scratch::kPartials, static_cast<std::size_t>(rows_ * pieces * acc_bytes_));
    fillIdentity(partials, rows_ * pieces);
    pool.parallelFor(rows_ * pieces, kTaskElements / kElements,
                     [&](std::int64_t begin, std::int64_t end) {
                       for (std::int64_t unit = begin; unit < end; ++unit) {
                         const std::int64_t column = unit % pieces * kElements;
                         const std::int64_t n = std::min(kElements, columns_ - column);
                         const std::byte* x = compute(pointers, unit / pieces, 1, column, n);
                         loops_.row(x, n, partials + unit * acc_bytes_);
                       }
                     });
    for (std::int64_t row = 0; row < rows_; ++row) {
      std::byte* parts = partials + row * pieces * acc_bytes_;
      mergeParts(parts, pieces, 1);
      std::memcpy(acc + row * acc_bytes_, parts, static_cast<std::size_t>(acc_bytes_));
    }
  }

  void reduceRows(ThreadPool& pool, std::span<std::byte* const> pointers, std::byte* acc) const {
    const std::int64_t blocks = (columns_ + kColumns - 1) / kColumns;
    const std::int64_t wanted = (rows_ * columns_ / kPartElements + blocks - 1) / blocks;
    const std::int64_t parts = std::clamp<std::int64_t>(wanted, 1, std::min(rows_, kMaxParts));
    const auto bytes = static_cast<std::size_t>(parts * columns_ * acc_bytes_);
    std::byte* partials = parts == 1 ? acc : threadScratch(Scratch::kPartials, bytes);
    pool.parallelFor(parts * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t part = unit / blocks;
        const std::int64_t column = unit % blocks * kColumns;
        reduceColumns(pointers, rows_ * part / parts, rows_ * (part + 1) / parts, column,
                      partials + (part * columns_ + column) * acc_bytes_);
      }
    });
    if (parts == 1) return;
    mergeParts(partials, parts, columns_);
    std::memcpy(acc, partials, static_cast<std::size_t>(columns_ * acc_bytes_));
  }

  /// Rows [begin, end) of up to kColumns columns into their accumulators.
  void reduceColumns(std::span<std::byte* const> pointers, std::int64_t begin, std::int64_t end,
                     std::int64_t column, std::byte* total) const {
    const std::int64_t columns = std::min(kColumns, columns_ - column);
    const std::int64_t chunk = std::min(kFoldRows, kElements / columns);
    std::byte* sum = threadScratch(Scratch::kAccumulators, kColumns * 8);
    fillIdentity(total, columns);
    fillIdentity(sum, columns);
    std::int64_t since_fold = 0;
    for (std::int64_t row = begin; row < end; row += chunk) {
      const std::int64_t rows = std::min(chunk, end - row);
      const std::byte* x = compute(pointers, row, rows, column, columns);
      loops_.column(x, columns, rows, sum, columns);
      since_fold += rows;
      if (since_fold < kFoldRows) continue;
      loops_.merge(sum, total, columns);
      fillIdentity(sum, columns);
      since_fold = 0;
    }
    loops_.merge(sum, total, columns);
  }

  std::size_t inputs_;
  std::int64_t rows_;
  std::int64_t columns_;
  Attributes::Integers strides_;  ///< of each input: along the rows, along the columns
  bool rows_vanish_;
  std::int64_t bytes_;  ///< of an element that is computed
  ExprEvaluator evaluator_;
  Reducer reducer_;
  const Loops& loops_;
  std::int64_t acc_bytes_;
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
const RegisterKernel kMappedReduce{"popops.reduceMapped", makeMappedReduce, checkMappedReduce};

}  // namespace
}  // namespace ipujax::engine::reduction
