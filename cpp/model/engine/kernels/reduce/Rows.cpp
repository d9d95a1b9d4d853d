#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "engine/Workspace.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/VerifyStep.hpp"

/// Runs several steps that work row by row on a few rows at a time: the results of one step are
/// still in the cache when the next one reads them. engine/build/Rows.cpp makes these steps.
///
/// Operands of the inner steps have the rows as their first dimension, or are one element (rank 0)
/// that holds for all rows. Their `buffer` is an operand of the outer step or, numbered after
/// those, an entry of `locals` (bytes of a row): memory of the thread for the current rows.
namespace ipujax::engine {
namespace {

constexpr std::size_t kMostOperands = 64;

class RowsKernel final : public Kernel {
 public:
  explicit RowsKernel(const StepDesc& step)
      : rows_(step.attributes.integer("rows")), chunk_(step.attributes.integer("chunk")) {
    for (const std::int64_t row_bytes : step.attributes.integers("locals")) {
      locals_.push_back(local_bytes_);
      local_bytes_ += static_cast<std::size_t>((row_bytes * chunk_ + 63) / 64 * 64);
    }
    for (const StepDesc& inner : step.inner) add(inner, step.operands.size());
  }

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const std::int64_t chunks = (rows_ + chunk_ - 1) / chunk_;
    context.pool.parallelFor(chunks, 1, [&](std::int64_t begin, std::int64_t end) {
      Workspace workspace;
      std::byte* locals = workspace.get(static_cast<std::int64_t>(local_bytes_));
      for (std::int64_t c = begin; c < end; ++c) {
        for (const Part& part : parts_) runPart(context, part, pointers, locals, c * chunk_);
      }
    });
  }

 private:
  struct Operand {
    std::size_t pointer = 0;     ///< of the step, or
    std::int64_t local = -1;     ///< where it begins in the thread's memory
    std::int64_t row_bytes = 0;  ///< from one row to the next
  };
  struct Part {
    std::unique_ptr<Kernel> kernel;
    std::unique_ptr<Kernel> rest;  ///< for the last rows, if they are fewer
    std::vector<Operand> operands;
  };

  void add(const StepDesc& inner, std::size_t num_pointers) {
    Part part;
    for (const OperandDesc& o : inner.operands) {
      Operand operand{.pointer = o.buffer};
      if (o.buffer >= num_pointers) operand.local = locals_.at(o.buffer - num_pointers);
      if (!o.shape.empty())
        operand.row_bytes = o.strides[0] * static_cast<std::int64_t>(sizeOf(o.type));
      part.operands.push_back(operand);
    }
    part.kernel = kernelFor(inner, chunk_);
    if (rows_ % chunk_ != 0) part.rest = kernelFor(inner, rows_ % chunk_);
    parts_.push_back(std::move(part));
  }

  static std::unique_ptr<Kernel> kernelFor(StepDesc step, std::int64_t rows) {
    for (OperandDesc& o : step.operands) {
      if (!o.shape.empty()) o.shape[0] = rows;
    }
    return KernelRegistry::instance().make(step);
  }

  void runPart(RunContext& context, const Part& part, std::span<std::byte* const> pointers,
               std::byte* locals, std::int64_t row) const {
    std::array<std::byte*, kMostOperands> at;
    for (std::size_t i = 0; i < part.operands.size(); ++i) {
      const Operand& o = part.operands[i];
      at[i] = o.local < 0 ? pointers[o.pointer] + row * o.row_bytes : locals + o.local;
    }
    const Kernel& kernel = row + chunk_ > rows_ ? *part.rest : *part.kernel;
    kernel.run(context, {at.data(), part.operands.size()});
  }

  std::int64_t rows_;
  std::int64_t chunk_;  ///< rows at a time
  std::size_t local_bytes_ = 0;
  std::vector<std::int64_t> locals_;  ///< where each begins
  std::vector<Part> parts_;
};

/// Checks engine.rows and the steps that it runs.
class RowsCheck {
 public:
  explicit RowsCheck(StepCheck& check)
      : check_(check),
        rows_(check.integer("rows", 1, StepCheck::kMostElements)),
        chunk_(check.integer("chunk", 1, rows_)) {
    std::int64_t bytes = 0;
    for (const std::int64_t row_bytes : check.integers("locals")) {
      check.need(row_bytes >= 0 && row_bytes <= kMostLocalBytes / chunk_, "locals of some bytes");
      bytes += row_bytes * chunk_;
      check.need(bytes <= kMostLocalBytes, "locals of fewer bytes");
    }
  }

  void run() {
    // The inner steps check which operands may overlap.
    check_.allowOverlaps();
    for (std::size_t i = 0; i < check_.numOperands(); ++i) check_.anyAccess(i);
    for (const StepDesc& inner : check_.step().inner) {
      const KernelRole role = roleOf(inner);
      const bool known = role == KernelRole::kElementwise || isReduction(role);
      check_.need(known && inner.inner.empty(), "steps that work row by row");
      check_.need(inner.operands.size() <= kMostOperands, "steps of fewer operands");
      for (const OperandDesc& o : inner.operands) checkOperand(o);
      checkChunk(inner, chunk_);
      if (rows_ % chunk_ != 0) checkChunk(inner, rows_ % chunk_);
    }
  }

 private:
  static constexpr std::int64_t kMostLocalBytes = std::int64_t{1} << 32;

  void checkOperand(const OperandDesc& o) const {
    if (o.buffer >= check_.numOperands()) return checkLocal(o);
    const OperandDesc& outer = check_.step().operands[o.buffer];
    check_.need(o.type == outer.type && o.shape == outer.shape && o.strides == outer.strides,
                "operands that its steps see as they are");
    check_.need(o.access == Access::kRead || o.access == outer.access, "operands that it writes");
    check_.need(o.shape.empty() || o.shape[0] == rows_, "operands with the step's number of rows");
  }

  /// Checks that each row lies within its own bytes.
  void checkLocal(const OperandDesc& o) const {
    const auto& locals = check_.integers("locals");
    const std::size_t local = o.buffer - check_.numOperands();
    check_.need(local < locals.size() && !o.shape.empty() && o.shape[0] == rows_,
                "locals with the step's number of rows");
    const auto element = static_cast<std::int64_t>(sizeOf(o.type));
    std::int64_t last = 0;
    for (std::size_t d = 1; d < o.shape.size(); ++d) {
      check_.need(o.strides[d] >= 0, "locals that run forward");
      last += (o.shape[d] - 1) * o.strides[d];
    }
    const bool inside = o.strides[0] * element == locals[local] && last < o.strides[0];
    check_.need(inside || o.numElements() == 0, "locals that hold their rows");
  }

  void checkChunk(StepDesc step, std::int64_t rows) const {
    std::vector<Footprint> footprints;
    for (OperandDesc& o : step.operands) {
      if (!o.shape.empty()) o.shape[0] = rows;
      footprints.emplace_back().assign(o, 0);
      footprints.back().space = o.buffer;
    }
    verifyStep(step, check_.image(), footprints);
  }

  StepCheck& check_;
  std::int64_t rows_;
  std::int64_t chunk_;
};

void checkRows(StepCheck& check) { RowsCheck(check).run(); }

const RegisterKernel kRows{"engine.rows", makeKernel<RowsKernel>, checkRows};

}  // namespace
}  // namespace ipujax::engine
