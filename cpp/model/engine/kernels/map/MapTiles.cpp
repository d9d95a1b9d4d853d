#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "engine/Workspace.hpp"
#include "engine/kernels/map/MapKernel.hpp"
#include "engine/simd/Transpose.hpp"

namespace ipujax::engine::maps {
namespace {

using expr::ExprProgram;

/// Copies rows of kBytes bytes, a size known to the compiler.
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

}  // namespace

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

namespace {

constexpr std::int64_t kMostLanes = 16;  ///< of simd::chainLanes()

/// Elements of a tile: with the evaluator's blocks as tiles, short rows were slower.
constexpr std::int64_t kTile = 2048;

/// For any strides. Takes tiles of rows x cols of the last two dimensions: copies each operand to a
/// dense block first, and the results out afterwards.
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
    cols_ = std::min(cols, transposed ? std::int64_t{32} : kTile);
    rows_ = std::min(rows, kTile / cols_);
    if (haveRepeatedRows(space_, num_inputs_)) alignTiles();
    for (std::size_t o = 0; o < num_operands_; ++o) {
      const auto& s = space_.strides[o];
      const bool one = o < num_inputs_ && uniform_[o];
      direct_.push_back(one || (s[rank - 1] == 1 && (rows_ == 1 || s[rank - 2] == cols_)));
      to_next_.push_back(s[rank - 2] == 0 ? 0 : rows_ * cols_ * bytes_[o]);
    }
  }

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const std::size_t rank = space_.shape.size();
    std::int64_t outer = 1;
    for (std::size_t d = 0; d + 2 < rank; ++d) outer *= space_.shape[d];
    const std::int64_t row_tiles = (space_.shape[rank - 2] + rows_ - 1) / rows_;
    const std::int64_t col_tiles = (space_.shape[rank - 1] + cols_ - 1) / cols_;
    const std::int64_t tiles = row_tiles * col_tiles;
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      Cursor cursor(space_, rank - 2, bytes_, pointers);
      std::int64_t at = begin / tiles;
      cursor.seek(at);
      Workspace workspace;
      Pointers block(pointers);
      Pointers repeated(num_operands_);
      const Stage stage{workspace.get(static_cast<std::int64_t>(num_operands_ * kStage)), block,
                        repeated};
      for (std::int64_t unit = begin, count = 1; unit < end; unit += count) {
        if (unit / tiles != at) {
          cursor.next();
          ++at;
        }
        // Go down the rows first: this uses up a transposed operand's lines while they are cached.
        const std::int64_t tile = unit % tiles;
        count = std::min(end - unit, tilesAlike(tile));
        runTiles(cursor.data(), tile % row_tiles * rows_, tile / row_tiles * cols_, count, stage);
      }
    };
    const std::int64_t units = outer * tiles;
    const std::int64_t size = rows_ * cols_;
    runUnits(context, units, size, part);
  }

 private:
  static constexpr std::size_t kStage = static_cast<std::size_t>(kTile) * 8;
  /// Where operands are copied to, and for those that repeat one row, which row is there.
  struct Stage {
    std::byte* memory;
    Pointers& block;
    Pointers& repeated;
  };

  /// Makes tiles of whole vectors of elements, if a few rows suffice for that.
  void alignTiles() {
    const std::int64_t group = kMostLanes / std::gcd(kMostLanes, cols_);
    if (rows_ > group) rows_ = rows_ / group * group;
    repeated_rows_ = true;
  }

  /// Number of tiles from this one on that share copied operands and have all others contiguous.
  std::int64_t tilesAlike(std::int64_t tile) const {
    if (!repeated_rows_) return 1;
    return std::max<std::int64_t>(1, space_.shape[space_.shape.size() - 2] / rows_ - tile);
  }

  /// Evaluates `count` tiles, one below the other.
  void runTiles(std::byte* const* base, std::int64_t row, std::int64_t col, std::int64_t count,
                const Stage& stage) const {
    Pointers& block = stage.block;
    const std::size_t rank = space_.shape.size();
    const std::int64_t rows = std::min(rows_, space_.shape[rank - 2] - row);
    const std::int64_t cols = std::min(cols_, space_.shape[rank - 1] - col);
    for (std::size_t o = 0; o < num_operands_; ++o) {
      const auto& s = space_.strides[o];
      std::byte* at = base[o] + (row * s[rank - 2] + col * s[rank - 1]) * bytes_[o];
      const bool whole = direct_[o] && (cols == cols_ || rows == 1);
      const bool one = o < num_inputs_ && uniform_[o];
      block[o] = one || whole ? at : stage.memory + o * kStage;
      const bool is_there = s[rank - 2] == 0 && cols == cols_ && stage.repeated[o] == at;
      // The first tile is as high as any that follows it.
      stage.repeated[o] = cols == cols_ && rows == rows_ ? at : nullptr;
      if (o < num_inputs_ && block[o] != at && !is_there)
        copy(at, s[rank - 2] * bytes_[o], s[rank - 1] * bytes_[o], block[o], cols * bytes_[o],
             bytes_[o], rows, cols, bytes_[o]);
    }
    evaluator_.runRows({block.data(), num_inputs_},
                       {block.data() + num_inputs_, num_operands_ - num_inputs_}, rows * cols,
                       count, to_next_);
    for (std::size_t o = num_inputs_; o < num_operands_; ++o) {
      const auto& s = space_.strides[o];
      std::byte* at = base[o] + (row * s[rank - 2] + col * s[rank - 1]) * bytes_[o];
      if (block[o] != at)
        copy(block[o], cols * bytes_[o], bytes_[o], at, s[rank - 2] * bytes_[o],
             s[rank - 1] * bytes_[o], rows, cols, bytes_[o]);
    }
  }

  std::vector<bool> uniform_;
  std::vector<bool> direct_;           ///< whether its full tiles are dense in memory
  std::vector<std::int64_t> to_next_;  ///< bytes to the next tile, of each operand
  bool repeated_rows_ = false;
  std::int64_t rows_ = 1;
  std::int64_t cols_ = 1;
};

/// For rows of two short dimensions, n1 x n2, such as groups of channels: a tile is several rows.
class ShortRowsMap final : public MapKernel {
 public:
  ShortRowsMap(const StepDesc& step, const ExprProgram& program, const Space& space,
               const std::vector<bool>& uniform)
      : MapKernel(step, program, space, uniform), outer_(space.shape.size() - 3) {
    n1_ = space.shape[outer_ + 1];
    n2_ = space.shape[outer_ + 2];
    rows_ = std::min(space.shape[outer_], kBlock / (n1_ * n2_));
    for (std::size_t o = 0; o < num_operands_; ++o)
      direct_.push_back((o < num_inputs_ && uniform[o]) || isDense(space, space.strides[o]));
  }

  /// Whether rows are too short for the other maps, and contiguous in at least one operand.
  static bool fits(const Space& space) {
    constexpr std::int64_t kShort = 128;
    const std::size_t rank = space.shape.size();
    if (rank < 3 || space.shape[rank - 1] * space.shape[rank - 2] > kShort) return false;
    return std::any_of(space.strides.begin(), space.strides.end(),
                       [&](const auto& s) { return isDense(space, s); });
  }

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const std::int64_t tiles = (space_.shape[outer_] + rows_ - 1) / rows_;
    std::int64_t units = tiles;
    for (std::size_t d = 0; d < outer_; ++d) units *= space_.shape[d];
    const std::int64_t size = rows_ * n1_ * n2_;
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      Cursor cursor(space_, outer_, bytes_, pointers);
      Workspace workspace;
      Pointers block(pointers);
      Pointers repeated(num_operands_);
      std::byte* memory =
          workspace.get(static_cast<std::int64_t>(num_operands_) * kBlock * std::int64_t{8});
      for (std::int64_t unit = begin; unit < end; ++unit) {
        cursor.seek(unit / tiles);
        const std::int64_t row = unit % tiles * rows_;
        load(cursor.data(), row, memory, block, repeated);
        const std::int64_t rows = std::min(rows_, space_.shape[outer_] - row);
        evaluate(block.data(), rows * n1_ * n2_);
        save(cursor.data(), row, rows, block);
      }
    };
    runUnits(context, units, size, part);
  }

 private:
  static bool isDense(const Space& space, const std::vector<std::int64_t>& strides) {
    const std::size_t last = space.shape.size() - 1;
    return strides[last] == 1 && strides[last - 1] == space.shape[last] &&
           strides[last - 2] == space.shape[last] * space.shape[last - 1];
  }

  std::byte* placeOf(std::byte* const* base, std::size_t o, std::int64_t row) const {
    return base[o] + row * space_.strides[o][outer_] * bytes_[o];
  }

  /// A row that all rows of a tile share is copied once for all tiles that share it.
  void load(std::byte* const* base, std::int64_t first, std::byte* memory, Pointers& block,
            Pointers& repeated) const {
    const std::int64_t rows = std::min(rows_, space_.shape[outer_] - first);
    for (std::size_t o = 0; o < num_operands_; ++o) {
      std::byte* at = placeOf(base, o, first);
      block[o] = direct_[o] ? at : memory + static_cast<std::int64_t>(o) * kBlock * 8;
      const auto& s = space_.strides[o];
      if (direct_[o] || o >= num_inputs_ || (s[outer_] == 0 && repeated[o] == at)) continue;
      repeated[o] = rows == rows_ ? at : nullptr;
      const std::int64_t size = bytes_[o];
      for (std::int64_t r = 0; r < rows; ++r)
        copy(at + r * s[outer_] * size, s[outer_ + 1] * size, s[outer_ + 2] * size,
             block[o] + r * n1_ * n2_ * size, n2_ * size, size, n1_, n2_, size);
    }
  }

  void save(std::byte* const* base, std::int64_t first, std::int64_t rows, Pointers& block) const {
    for (std::size_t o = num_inputs_; o < num_operands_; ++o) {
      const auto& s = space_.strides[o];
      const std::int64_t size = bytes_[o];
      for (std::int64_t r = 0; !direct_[o] && r < rows; ++r)
        copy(block[o] + r * n1_ * n2_ * size, n2_ * size, size, placeOf(base, o, first + r),
             s[outer_ + 1] * size, s[outer_ + 2] * size, n1_, n2_, size);
    }
  }

  std::size_t outer_;
  std::int64_t n1_, n2_, rows_;
  std::vector<bool> direct_;
};

}  // namespace

bool haveRepeatedRows(const Space& space, std::size_t num_inputs) {
  const std::size_t rank = space.shape.size();
  if (rank < 2 || space.shape[rank - 1] > kBlock / 2) return false;
  for (std::size_t o = 0; o < space.strides.size(); ++o) {
    const std::int64_t row = space.strides[o][rank - 2], col = space.strides[o][rank - 1];
    const bool follow = col == 1 && row == space.shape[rank - 1];
    const bool repeated = o < num_inputs && row == 0 && (col == 1 || col == 0);
    if (!follow && !repeated) return false;
  }
  return true;
}

std::unique_ptr<Kernel> makeTiledMap(const StepDesc& step, const ExprProgram& program,
                                     const Space& space, const std::vector<bool>& uniform) {
  if (auto strips = makeStripMap(step, program, space, uniform)) return strips;
  if (ShortRowsMap::fits(space))
    return std::make_unique<ShortRowsMap>(step, program, space, uniform);
  return std::make_unique<TileMap>(step, program, space, uniform);
}

}  // namespace ipujax::engine::maps
