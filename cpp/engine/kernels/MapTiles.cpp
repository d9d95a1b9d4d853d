#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "engine/Workspace.hpp"
#include "engine/kernels/MapKernel.hpp"
#include "engine/simd/Transpose.hpp"

namespace ipujax::engine::maps {
namespace {

using expr::ExprProgram;
using expr::RandomState;

/// Rows of so many bytes, which the compiler then knows.
template <std::int64_t kBytes>
void shortRows(const std::byte* src, std::byte* dst, std::int64_t rows, std::int64_t src_row,
               std::int64_t dst_row) {
  for (std::int64_t r = 0; r < rows; ++r) std::memcpy(dst + r * dst_row, src + r * src_row, kBytes);
}

void denseRows(const std::byte* src, std::byte* dst, std::int64_t rows, std::int64_t bytes,
               std::int64_t src_row, std::int64_t dst_row) {
  switch (bytes) {
    case 4:
      return shortRows<4>(src, dst, rows, src_row, dst_row);
    case 6:
      return shortRows<6>(src, dst, rows, src_row, dst_row);
    case 8:
      return shortRows<8>(src, dst, rows, src_row, dst_row);
    case 12:
      return shortRows<12>(src, dst, rows, src_row, dst_row);
    case 16:
      return shortRows<16>(src, dst, rows, src_row, dst_row);
    case 32:
      return shortRows<32>(src, dst, rows, src_row, dst_row);
    case 64:
      return shortRows<64>(src, dst, rows, src_row, dst_row);
    default:
      for (std::int64_t r = 0; r < rows; ++r)
        std::memcpy(dst + r * dst_row, src + r * src_row, static_cast<std::size_t>(bytes));
  }
}

/// rows x cols elements of `size` bytes; strides in bytes.
void copy(const std::byte* src, std::int64_t src_row, std::int64_t src_col, std::byte* dst,
          std::int64_t dst_row, std::int64_t dst_col, std::int64_t rows, std::int64_t cols,
          std::int64_t size) {
  const simd::CopyKernels& kernels = simd::copyKernels();
  const int log2 = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
  if (src_col == size && dst_col == size) {
    denseRows(src, dst, rows, cols * size, src_row, dst_row);
  } else if (src_col == 0 && dst_col == size) {
    kernels.fill[log2](src, dst, rows, cols, src_row, dst_row);
  } else if (src_row == size && dst_col == size && rows >= 8 && src_col > 0) {
    kernels.transpose[log2](src, dst, rows, cols, src_col, dst_row);
  } else if (src_col == size && dst_row == size && cols >= 8 && src_row > 0) {
    kernels.transpose[log2](src, dst, cols, rows, src_row, dst_col);
  } else {
    kernels.strided[log2](src, dst, rows, cols, src_row, src_col, dst_row, dst_col);
  }
}

/// Any strides: blocks of rows x cols of the last two dimensions, each operand copied to a dense
/// block before and the results copied out after.
class TileMap final : public MapKernel {
 public:
  TileMap(const StepDesc& step, const ExprProgram& program, Space space,
          const std::vector<bool>& uniform)
      : MapKernel(step, program, space, uniform), uniform_(uniform) {
    if (space_.shape.size() < 2) {  // a second dimension of one
      space_.shape.insert(space_.shape.begin(), 1);
      for (auto& s : space_.strides) s.insert(s.begin(), 0);
    }
    const std::size_t rank = space_.shape.size();
    const std::int64_t rows = space_.shape[rank - 2];
    const std::int64_t cols = space_.shape[rank - 1];
    bool transposed = false;
    for (const auto& s : space_.strides)
      transposed = transposed || (s[rank - 2] == 1 && std::abs(s[rank - 1]) > 1);
    cols_ = std::min(cols, transposed ? std::int64_t{32} : kBlock);
    rows_ = std::min(rows, kBlock / cols_);
    for (std::size_t o = 0; o < num_operands_; ++o) {
      const auto& s = space_.strides[o];
      const bool one = o < num_inputs_ && uniform_[o];
      direct_.push_back(one || (s[rank - 1] == 1 && (rows_ == 1 || s[rank - 2] == cols_)));
    }
  }

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const std::size_t rank = space_.shape.size();
    std::int64_t outer = 1;
    for (std::size_t d = 0; d + 2 < rank; ++d) outer *= space_.shape[d];
    const std::int64_t row_tiles = (space_.shape[rank - 2] + rows_ - 1) / rows_;
    const std::int64_t col_tiles = (space_.shape[rank - 1] + cols_ - 1) / cols_;
    const std::int64_t tiles = row_tiles * col_tiles;
    const std::uint64_t seed = nextSeed();
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      Cursor cursor(space_, rank - 2, bytes_, pointers);
      std::int64_t at = begin / tiles;
      cursor.seek(at);
      Pointers block(pointers);
      for (std::int64_t unit = begin; unit < end; ++unit) {
        if (unit / tiles != at) {
          cursor.next();
          ++at;
        }
        // Down the rows first: a transposed operand's lines are used up while they are cached.
        const std::int64_t tile = unit % tiles;
        runTile(cursor.data(), tile % row_tiles * rows_, tile / row_tiles * cols_, block,
                MapKernel::at(seed, unit * rows_ * cols_));
      }
    };
    const std::int64_t units = outer * tiles;
    const std::int64_t size = rows_ * cols_;
    if (units * size <= grain_)
      part(0, units);
    else
      context.pool.parallelFor(units, std::max<std::int64_t>(1, grain_ / size), part);
  }

 private:
  void runTile(std::byte* const* base, std::int64_t row, std::int64_t col, Pointers& block,
               RandomState random) const {
    const std::size_t rank = space_.shape.size();
    const std::int64_t rows = std::min(rows_, space_.shape[rank - 2] - row);
    const std::int64_t cols = std::min(cols_, space_.shape[rank - 1] - col);
    constexpr std::size_t kStage = static_cast<std::size_t>(kBlock) * 8;
    ipujax::engine::Workspace workspace;
    std::byte* stage = workspace.get(static_cast<std::int64_t>(num_operands_ * kStage));
    for (std::size_t o = 0; o < num_operands_; ++o) {
      const auto& s = space_.strides[o];
      std::byte* at = base[o] + (row * s[rank - 2] + col * s[rank - 1]) * bytes_[o];
      const bool whole = direct_[o] && (cols == cols_ || rows == 1);
      const bool one = o < num_inputs_ && uniform_[o];
      block[o] = one || whole ? at : stage + o * kStage;
      if (o < num_inputs_ && block[o] != at)
        copy(at, s[rank - 2] * bytes_[o], s[rank - 1] * bytes_[o], block[o], cols * bytes_[o],
             bytes_[o], rows, cols, bytes_[o]);
    }
    evaluate(block.data(), rows * cols, random);
    for (std::size_t o = num_inputs_; o < num_operands_; ++o) {
      const auto& s = space_.strides[o];
      std::byte* at = base[o] + (row * s[rank - 2] + col * s[rank - 1]) * bytes_[o];
      if (block[o] != at)
        copy(block[o], cols * bytes_[o], bytes_[o], at, s[rank - 2] * bytes_[o],
             s[rank - 1] * bytes_[o], rows, cols, bytes_[o]);
    }
  }

  std::vector<bool> uniform_;
  std::vector<bool> direct_;  ///< a full tile of it is dense in memory
  std::int64_t rows_ = 1;
  std::int64_t cols_ = 1;
};
/// Rows along which some operands run along memory and others across it: the latter are copied
/// for a strip of rows, into rows; the former are read and written where they are.
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
    const std::uint64_t seed = nextSeed();
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      Cursor cursor(space_, outer_, bytes_, pointers);
      for (std::int64_t unit = begin; unit < end; ++unit) {
        cursor.seek(unit / (strips * pieces));
        runStrip(cursor.data(), unit / pieces % strips * rows_, unit % pieces * cols_,
                 at(seed, unit * rows_ * cols_));
      }
    };
    const std::int64_t size = rows_ * cols_;
    if (units * size <= grain_)
      part(0, units);
    else
      context.pool.parallelFor(units, std::max<std::int64_t>(1, grain_ / size), part);
  }

 private:
  static constexpr std::int64_t kRows = 16;  // a cache line of floats
  static constexpr std::int64_t kCols = 256;

  void runStrip(std::byte* const* base, std::int64_t row, std::int64_t col,
                RandomState random) const {
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
                       row_bytes_, random);
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
  std::vector<std::int64_t> row_bytes_;  ///< from one row to the next where it is evaluated
};

/// Whether rows are long, one operand at least is across memory, and another along it.
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

std::unique_ptr<Kernel> makeTiledMap(const StepDesc& step, const ExprProgram& program,
                                     const Space& space, const std::vector<bool>& uniform) {
  if (hasStrips(space)) return std::make_unique<StripMap>(step, program, space, uniform);
  return std::make_unique<TileMap>(step, program, space, uniform);
}

}  // namespace ipujax::engine::maps
