#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "engine/Workspace.hpp"
#include "engine/kernels/Kernel.hpp"

/// The kernel "popops.sequence_slice": source [m, row], lengths, source offsets and result offsets
/// [n], result [r, row]; with attribute "zero_unused", rows that no run covers become zero, else
/// they are unchanged.
namespace ipujax::engine {
namespace {

constexpr std::int64_t kParallelBytes = 1 << 17;

class SequenceSlice final : public Kernel {
 public:
  explicit SequenceSlice(const StepDesc& step)
      : runs_(step.operands[1].shape[0]),
        source_rows_(step.operands[0].shape[0]),
        rows_(step.operands[4].shape[0]),
        row_bytes_(step.operands[0].shape[1] *
                   static_cast<std::int64_t>(sizeOf(step.operands[0].type))),
        zero_unused_(step.attributes.integer("zero_unused") != 0) {
    for (std::size_t i = 0; i < 3; ++i) strides_[i] = step.operands[1 + i].strides[0];
  }

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    Workspace workspace;
    auto* from = reinterpret_cast<std::uint32_t*>(workspace.get(4 * rows_));
    find(p, from);
    const std::int64_t grain =
        std::max<std::int64_t>(1, kParallelBytes / std::max<std::int64_t>(1, row_bytes_));
    context.pool.parallelFor(
        rows_, grain, [&](std::int64_t begin, std::int64_t end) { fill(p, from, begin, end); });
  }

 private:
  /// For each result row, the source row plus 1, or 0 if none; the largest if runs overlap.
  void find(std::span<std::byte* const> p, std::uint32_t* from) const {
    std::fill(from, from + rows_, 0u);
    const auto number = [&](std::size_t which, std::int64_t run) {
      return std::int64_t{
          reinterpret_cast<const std::uint32_t*>(p[1 + which])[run * strides_[which]]};
    };
    for (std::int64_t run = 0; run < runs_; ++run) {
      const std::int64_t source = number(1, run);
      const std::int64_t to = number(2, run);
      const std::int64_t n = std::min({number(0, run), source_rows_ - source, rows_ - to});
      for (std::int64_t i = 0; i < n; ++i)
        from[to + i] = std::max(from[to + i], static_cast<std::uint32_t>(source + i + 1));
    }
  }

  /// Fills rows [begin, end); neighbours that come from neighbours are copied at once.
  void fill(std::span<std::byte* const> p, const std::uint32_t* from, std::int64_t begin,
            std::int64_t end) const {
    for (std::int64_t row = begin; row < end;) {
      std::int64_t n = 1;
      const bool covered = from[row] > 0;
      while (row + n < end && (covered ? from[row + n] == from[row] + n : from[row + n] == 0)) ++n;
      std::byte* out = p[4] + row * row_bytes_;
      const auto bytes = static_cast<std::size_t>(n * row_bytes_);
      if (covered)
        std::memcpy(out, p[0] + (from[row] - std::int64_t{1}) * row_bytes_, bytes);
      else if (zero_unused_)
        std::memset(out, 0, bytes);
      row += n;
    }
  }

  std::int64_t runs_, source_rows_, rows_, row_bytes_;
  bool zero_unused_;
  std::array<std::int64_t, 3> strides_{};
};

void checkSequenceSlice(StepCheck& check) {
  check.operands(5);
  const bool zeroes = check.flag("zero_unused");
  const auto source = check.read(0).hasRank(2).isContiguous();
  const auto lengths = check.read(1).isInteger().isOfBytes(4).hasRank(1);
  for (const std::size_t i : {2, 3}) check.read(i).isInteger().isOfBytes(4).hasShapeOf(lengths);
  const auto out = (zeroes ? check.written(4) : check.updated(4)).hasRank(2).isContiguous();
  check.need(out->type == source->type && out->shape[1] == source->shape[1],
             "rows of one size and type");
  check.need(source->shape[0] < StepCheck::kMostElements, "rows that 32 bits count");
}

const RegisterKernel kSequenceSlice{"popops.sequence_slice", makeKernel<SequenceSlice>,
                                    checkSequenceSlice};

}  // namespace
}  // namespace ipujax::engine
