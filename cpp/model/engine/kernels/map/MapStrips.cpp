#include <algorithm>

#include "engine/Workspace.hpp"
#include "engine/kernels/map/MapKernel.hpp"

namespace ipujax::engine::maps {
namespace {

using expr::ExprProgram;

/// For rows along which some operands run along memory and others across it. The latter are copied
/// into rows, for a strip of rows at a time; the former are read and written in place.
class StripMap final : public MapKernel {
 public:
  StripMap(const StepDesc& step, const ExprProgram& program, const Space& space,
           const std::vector<bool>& uniform)
      : MapKernel(step, program, space, uniform), outer_(space.shape.size() - 2) {
    rows_ = std::min(kRows, space.shape[outer_]);
    cols_ = std::min(kCols, space.shape[outer_ + 1]);
    for (std::size_t o = 0; o < num_operands_; ++o) {
      const bool one = o < num_inputs_ && uniform[o];
      staged_.push_back(!one && space.strides[o][outer_ + 1] != 1);
      row_bytes_.push_back((staged_[o] ? cols_ : space.strides[o][outer_]) * bytes_[o]);
    }
  }

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const std::int64_t strips = (space_.shape[outer_] + rows_ - 1) / rows_;
    const std::int64_t pieces = (space_.shape[outer_ + 1] + cols_ - 1) / cols_;
    std::int64_t units = strips * pieces;
    for (std::size_t d = 0; d < outer_; ++d) units *= space_.shape[d];
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      Cursor cursor(space_, outer_, bytes_, pointers);
      for (std::int64_t unit = begin; unit < end; ++unit) {
        cursor.seek(unit / (strips * pieces));
        runStrip(cursor.data(), unit / pieces % strips * rows_, unit % pieces * cols_);
      }
    };
    const std::int64_t size = rows_ * cols_;
    runUnits(context, units, size, part);
  }

 private:
  static constexpr std::int64_t kRows = 16;  // a cache line of floats
  static constexpr std::int64_t kCols = 256;

  void runStrip(std::byte* const* base, std::int64_t row, std::int64_t col) const {
    const std::int64_t rows = std::min(rows_, space_.shape[outer_] - row);
    const std::int64_t cols = std::min(cols_, space_.shape[outer_ + 1] - col);
    Workspace workspace;
    Pointers where({base, num_operands_});
    Pointers lines({base, num_operands_});
    for (std::size_t o = 0; o < num_operands_; ++o) {
      const std::int64_t size = bytes_[o];
      const std::int64_t down = space_.strides[o][outer_] * size;
      const std::int64_t along = space_.strides[o][outer_ + 1] * size;
      where[o] += row * down + col * along;
      lines[o] = staged_[o] ? workspace.get(rows_ * row_bytes_[o]) : where[o];
      if (staged_[o] && o < num_inputs_)
        copy(where[o], down, along, lines[o], row_bytes_[o], size, rows, cols, size);
    }
    evaluator_.runRows({lines.data(), num_inputs_},
                       {lines.data() + num_inputs_, num_operands_ - num_inputs_}, cols, rows,
                       row_bytes_);
    for (std::size_t o = num_inputs_; o < num_operands_; ++o) {
      const std::int64_t size = bytes_[o];
      if (staged_[o])
        copy(lines[o], row_bytes_[o], size, where[o], space_.strides[o][outer_] * size,
             space_.strides[o][outer_ + 1] * size, rows, cols, size);
    }
  }

  std::size_t outer_;
  std::int64_t rows_ = 1, cols_ = 1;
  std::vector<bool> staged_;
  std::vector<std::int64_t> row_bytes_;  ///< from one row to the next during evaluation
};

/// Whether rows are long, at least one operand runs across memory, and another along it.
bool hasStrips(const Space& space) {
  constexpr std::int64_t kLeastCols = 64;
  constexpr std::int64_t kLeastRows = 8;
  if (space.shape.size() < 2) return false;
  const std::size_t row = space.shape.size() - 2;
  if (space.shape[row] < kLeastRows || space.shape[row + 1] < kLeastCols) return false;
  std::size_t across = 0, along = 0;
  for (const auto& s : space.strides) {
    across += s[row] == 1 && s[row + 1] > 1;
    along += s[row + 1] == 1;
  }
  return across > 0 && along > 0;
}

}  // namespace

std::unique_ptr<Kernel> makeStripMap(const StepDesc& step, const ExprProgram& program,
                                     const Space& space, const std::vector<bool>& uniform) {
  if (!hasStrips(space)) return nullptr;
  return std::make_unique<StripMap>(step, program, space, uniform);
}

}  // namespace ipujax::engine::maps
