#include "engine/blas/Gemm.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/ThreadPool.hpp"
#include "engine/blas/MicroKernel.hpp"
#include "engine/blas/OpenBlas.hpp"
#include "engine/blas/Scratch.hpp"

namespace ipujax::engine::blas {
namespace {

constexpr std::int64_t kDepth = 256;      ///< k per pass: A and B panels fit the first-level cache
constexpr std::int64_t kBlockRows = 168;  ///< rows of A kept in the second-level cache
constexpr std::int64_t kTaskWork = 1 << 17;      ///< multiply-adds worth a thread
constexpr std::int64_t kSharedFloats = 1 << 24;  ///< most of B packed at one time

std::int64_t ceilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

void forRange(ThreadPool* pool, std::int64_t n, std::int64_t grain, RangeFn fn) {
  if (pool && n > grain) {
    pool->parallelFor(n, grain, fn);
  } else if (n > 0) {
    fn(0, n);
  }
}

/// Writes a finished block of float sums to C.
void finish(const Gemm& g, const float* sums, std::int64_t ld, std::int64_t m0, std::int64_t rows,
            std::int64_t n0, std::int64_t cols) {
  float* line = scratch(ScratchUse::kRow, cols * 2);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t offset = (m0 + i) * g.c.row + n0 * g.c.col;
    const float* source = sums + i * ld;
    if (g.scale != 1.0f || g.accumulate) {
      for (std::int64_t j = 0; j < cols; ++j) line[j] = source[j] * g.scale;
      if (g.accumulate) {
        loadRow(g.c.data, g.c.type, offset, g.c.col, cols, line + cols);
        for (std::int64_t j = 0; j < cols; ++j) line[j] += line[cols + j];
      }
      source = line;
    }
    storeRow(source, g.c.data, g.c.type, offset, g.c.col, cols);
  }
}

/// The right operand for one task: packed for all columns by the caller, or packed here.
struct Right {
  const float* packed = nullptr;  ///< panels of all K, first column `first_col`
  std::int64_t first_col = 0;
};

/// One group of panels against all row blocks of a task, for one range of k.
void sweepRows(const LeftBlock& left, std::int64_t rows, std::int64_t per_block, MicroCall call,
               float* c, std::int64_t c_row, std::int64_t panels) {
  const auto& table = micro();
  for (std::int64_t r = 0, block = 0; r < rows; r += per_block, ++block) {
    call.a = left.data + block * left.block;
    call.c = c + r * c_row;
    table.fn[panels][std::min(per_block, rows - r)](call);
  }
}

/// Rows [m0, m0 + rows) and columns [n0, n0 + cols).
void block(const Gemm& g, const Right& right, std::int64_t m0, std::int64_t rows, std::int64_t n0,
           std::int64_t cols) {
  const auto& table = micro();
  const std::int64_t panel_group =
      std::min<std::int64_t>(rows <= table.max_rows[kMaxPanels] ? kMaxPanels : 2, table.max_panels);
  const std::int64_t max_rows = table.max_rows[panel_group];
  const std::int64_t per_block = ceilDiv(rows, ceilDiv(rows, max_rows));
  const std::int64_t depth = g.half_block ? g.half_block : kDepth;
  const bool direct = g.c.isFloat() && g.c.col == 1 && g.scale == 1.0f && !g.half_block;
  float* sums = direct ? static_cast<float*>(g.c.data) + m0 * g.c.row + n0
                       : scratch(ScratchUse::kResult, rows * cols);
  const std::int64_t ld = direct ? g.c.row : cols;
  float* left_buffer = scratch(ScratchUse::kLeft, leftScratch(rows, std::min(depth, g.k)));
  float* right_buffer =
      right.packed ? nullptr
                   : scratch(ScratchUse::kRight, panel_group * kPanel * std::min(depth, g.k));
  for (std::int64_t k0 = 0; k0 < g.k || k0 == 0; k0 += depth) {
    const std::int64_t kc = std::min(depth, g.k - k0);
    const LeftBlock left = packLeft(g.a, m0, rows, k0, kc, per_block, left_buffer);
    for (std::int64_t j = 0; j < cols; j += panel_group * kPanel) {
      const std::int64_t width = std::min(panel_group * kPanel, cols - j);
      const std::int64_t panels = ceilDiv(width, kPanel);
      MicroCall call;
      call.a_row = left.row;
      call.a_k = left.k;
      call.kc = kc;
      call.c_row = ld;
      call.cols = width;
      call.accumulate = k0 > 0 || (direct && g.accumulate);
      if (right.packed) {
        call.b = right.packed + (n0 + j - right.first_col) * g.k + k0 * kPanel;
        call.b_panel = g.k * kPanel;
      } else if (g.b.isFloat() && g.b.col == 1 && width % kPanel == 0 && rows <= 2 * per_block) {
        call.b = g.b.floats(k0, n0 + j);
        call.b_k = g.b.row;
        call.b_panel = kPanel;
      } else {
        for (std::int64_t p = 0; p < panels; ++p)
          packPanel(g.b, k0, kc, n0 + j + p * kPanel, std::min(kPanel, width - p * kPanel),
                    right_buffer + p * kPanel * kc);
        call.b = right_buffer;
        call.b_panel = kPanel * kc;
      }
      sweepRows(left, rows, per_block, call, sums + j, ld, panels);
    }
    if (g.half_block) roundToHalf(sums, rows * cols);
  }
  if (!direct) finish(g, sums, ld, m0, rows, n0, cols);
}

/// Few rows: the columns are shared out and each task packs its own part of B.
void wide(ThreadPool* pool, const Gemm& g) {
  const std::int64_t unit = kMaxPanels * kPanel;
  const std::int64_t units = ceilDiv(g.n, unit);
  const std::int64_t work = std::max<std::int64_t>(1, g.m * g.k * unit);
  const std::int64_t grain = ceilDiv(kTaskWork, work);
  forRange(pool, units, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t step = 512 / unit;  // bounds the scratch of a task
    for (std::int64_t u = begin; u < end; u += step) {
      const std::int64_t n0 = u * unit;
      block(g, {}, 0, g.m, n0, std::min(std::min(end, u + step) * unit, g.n) - n0);
    }
  });
}

/// Many rows: B is packed once, then blocks of rows are shared out.
void tall(ThreadPool* pool, const Gemm& g) {
  const std::int64_t threads = pool ? pool->numThreads() : 1;
  std::int64_t row_blocks = ceilDiv(g.m, kBlockRows);
  if (g.m * g.n * g.k >= kTaskWork * threads)
    row_blocks = std::min(ceilDiv(row_blocks, threads) * threads, ceilDiv(g.m, kMaxRows));
  const std::int64_t rows = ceilDiv(g.m, row_blocks);
  row_blocks = ceilDiv(g.m, rows);
  std::int64_t chunk = std::max<std::int64_t>(kSharedFloats / std::max<std::int64_t>(g.k, 1), 512);
  chunk = ceilDiv(chunk, 512) * 512;
  for (std::int64_t n0 = 0; n0 < g.n; n0 += chunk) {
    const std::int64_t cols = std::min(chunk, g.n - n0);
    const std::int64_t panels = ceilDiv(cols, kPanel);
    float* packed = scratch(ScratchUse::kShared, panels * kPanel * g.k);
    forRange(pool, panels, ceilDiv(1 << 15, kPanel * g.k + 1),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t p = begin; p < end; ++p)
                 packPanel(g.b, 0, g.k, n0 + p * kPanel, std::min(kPanel, cols - p * kPanel),
                           packed + p * kPanel * g.k);
             });
    const std::int64_t col_step = 512;
    const std::int64_t col_blocks = ceilDiv(cols, col_step);
    const std::int64_t work = std::max<std::int64_t>(1, rows * std::min(cols, col_step) * g.k);
    forRange(pool, row_blocks * col_blocks, ceilDiv(kTaskWork, work),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t t = begin; t < end; ++t) {
                 const std::int64_t m0 = t / col_blocks * rows;
                 const std::int64_t j = t % col_blocks * col_step;
                 block(g, {packed, n0}, m0, std::min(rows, g.m - m0), n0 + j,
                       std::min(col_step, cols - j));
               }
             });
  }
}

/// One row against columns that are contiguous along k: a dot product for each.
void dots(ThreadPool* pool, const Gemm& g) {
  float* row = scratch(ScratchUse::kLeft, g.k);
  loadRow(g.a.data, g.a.type, 0, g.a.col, g.k, row);
  const bool direct = g.c.isFloat() && g.scale == 1.0f && !g.accumulate;
  forRange(pool, g.n, ceilDiv(kTaskWork, std::max<std::int64_t>(g.k, 1)),
           [&](std::int64_t begin, std::int64_t end) {
             float* column = scratch(ScratchUse::kRight, g.k);
             for (std::int64_t j = begin; j < end; ++j) {
               const float* b = column;
               if (g.b.isFloat()) {
                 b = g.b.floats(0, j);
               } else {
                 micro().halfToFloat(g.b.halves(0, j), column, g.k);
               }
               const float sum = micro().dot(row, b, g.k);
               if (direct) {
                 static_cast<float*>(g.c.data)[j * g.c.col] = sum;
               } else {
                 finish(g, &sum, 1, 0, 1, j, 1);
               }
             }
           });
}

/// Dense float products large enough that packing pays go to OpenBLAS; halves, strided columns and
/// small ones, where its call overhead shows, stay with the micro kernels.
bool suitsOpenBlas(const Gemm& g) {
  constexpr std::int64_t kLeastWork = 1 << 26;  // multiply-adds; below, ours are as fast
  constexpr std::int64_t kLeastSide = 32;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto dense = [&](const auto& matrix) {
    return matrix.isFloat() && std::min(matrix.row, matrix.col) == 1 &&
           std::max(matrix.row, matrix.col) <= kMost && std::max(matrix.row, matrix.col) > 1;
  };
  return dense(g.a) && dense(g.b) && g.c.isFloat() && g.c.col == 1 && g.c.row >= g.n &&
         g.half_block == 0 && std::min({g.m, g.n, g.k}) >= kLeastSide &&
         std::max({g.m, g.n, g.k, g.c.row}) <= kMost && g.m * g.n * g.k >= kLeastWork;
}

/// Blocks of C, of a size that depends on C alone, shared out over the threads.
void byOpenBlas(ThreadPool* pool, const Gemm& g) {
  constexpr std::int64_t kBlock = 256;
  const std::int64_t row_blocks = ceilDiv(g.m, kBlock);
  const std::int64_t col_blocks = ceilDiv(g.n, kBlock);
  forRange(pool, row_blocks * col_blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t m0 = t / col_blocks * kBlock;
      const std::int64_t n0 = t % col_blocks * kBlock;
      Sgemm call;
      call.a_transposed = g.a.col != 1;
      call.b_transposed = g.b.col != 1;
      call.m = std::min(kBlock, g.m - m0);
      call.n = std::min(kBlock, g.n - n0);
      call.k = g.k;
      call.alpha = g.scale;
      call.a = g.a.floats(m0, 0);
      call.lda = std::max(g.a.row, g.a.col);
      call.b = g.b.floats(0, n0);
      call.ldb = std::max(g.b.row, g.b.col);
      call.accumulate = g.accumulate;
      call.c = static_cast<float*>(g.c.data) + m0 * g.c.row + n0;
      call.ldc = g.c.row;
      sgemm(call);
    }
  });
}

}  // namespace

void gemm(ThreadPool* pool, const Gemm& problem) {
  Gemm g = problem;
  if (g.m == 0 || g.n == 0) return;
  const bool swap = g.n == 1 ? g.m > 1 : (g.c.col != 1 && g.c.row == 1 && g.m > 1);
  if (swap) {
    std::swap(g.m, g.n);
    const ConstMatrix a = g.a;
    g.a = g.b.transposed();
    g.b = a.transposed();
    std::swap(g.c.row, g.c.col);
  }
  if (suitsOpenBlas(g)) return byOpenBlas(pool, g);
  if (g.m == 1 && g.b.row == 1 && g.k > 1 && !g.half_block && (g.b.col != 1 || g.n == 1))
    return dots(pool, g);
  if (g.m <= kBlockRows && g.n > kPanel) return wide(pool, g);
  if (g.m <= kMaxRows) return wide(pool, g);
  tall(pool, g);
}

}  // namespace ipujax::engine::blas
