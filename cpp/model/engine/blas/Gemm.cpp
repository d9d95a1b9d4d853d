#include "engine/blas/Gemm.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "engine/ThreadPool.hpp"
#include "engine/Workspace.hpp"
#include "engine/blas/MicroKernel.hpp"
#include "engine/blas/OpenBlas.hpp"
#include "engine/blas/SmallProducts.hpp"
#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine::blas {
namespace {

constexpr std::int64_t kDepthBytes = 1024;      ///< of a row per pass: panels fit in the L1 cache
constexpr std::int64_t kBlockRows = 168;        ///< rows of A kept in the L2 cache
constexpr std::int64_t kTaskWork = 1 << 17;     ///< multiply-adds that justify a thread
constexpr std::int64_t kSharedBytes = 1 << 26;  ///< maximum of B packed at one time

constexpr std::int64_t kColumns = 512;  ///< of a task: bounds its scratch

/// Rows of k per pass.
template <class M>
constexpr std::int64_t kDepth = kDepthBytes /
                                static_cast<std::int64_t>(sizeof(Word<M>)) * M::kPerWord;

std::int64_t ceilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

void forRange(ThreadPool* pool, std::int64_t n, std::int64_t grain, RangeFn fn) {
  if (pool && n > grain) {
    pool->parallelFor(n, grain, fn);
  } else if (n > 0) {
    fn(0, n);
  }
}

/// Writes a finished block of sums to C.
template <class M>
void finish(const Gemm& g, Word<M>* sums, std::int64_t ld, std::int64_t m0, std::int64_t rows,
            std::int64_t n0, std::int64_t cols) {
  using Sums = typename M::Sums;
  Workspace workspace;
  auto* before = workspace.get<Word<M>>(g.accumulate ? cols : 0);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t offset = (m0 + i) * g.c.row + n0 * g.c.col;
    Word<M>* line = sums + i * ld;
    if constexpr (std::is_same_v<M, Floats>) {
      if (g.scale != 1.0f)
        for (std::int64_t j = 0; j < cols; ++j) line[j] *= g.scale;
    }
    if (g.accumulate) {
      loadRow<Sums>(g.c.data, g.c.type, offset, g.c.col, cols, before);
      for (std::int64_t j = 0; j < cols; ++j) line[j] += before[j];
    }
    storeRow<Sums>(line, g.c.data, g.c.type, offset, g.c.col, cols);
  }
}

/// The right operand of one task: packed for all columns by the caller, or packed by the task.
template <class M>
struct Right {
  const Word<M>* packed = nullptr;  ///< panels with all of K, from column `first_col`
  std::int64_t first_col = 0;
};

/// Multiplies one group of panels by all row blocks of a task, for one range of k.
template <class M>
void sweepRows(const LeftBlock<M>& left, std::int64_t rows, std::int64_t per_block,
               MicroCall<Word<M>> call, Word<M>* c, std::int64_t c_row, std::int64_t panels) {
  const auto& table = micro<M>();
  for (std::int64_t r = 0, block = 0; r < rows; r += per_block, ++block) {
    call.a = left.data + block * left.block;
    call.c = c + r * c_row;
    table.fn[panels][std::min(per_block, rows - r)](call);
  }
}

/// Points `call` at rows [k0, k0 + num_k) and columns [n0, n0 + width) of B: packed by the caller,
/// used in place, or packed into `buffer`.
template <class M>
void setRight(const Gemm& g, const Right<M>& right, std::int64_t k0, std::int64_t num_k,
              std::int64_t n0, std::int64_t width, bool few_rows, Word<M>* buffer,
              MicroCall<Word<M>>& call) {
  const std::int64_t words = wordsOf<M>(num_k);
  call.b_k = kPanel<M>;
  if (right.packed) {
    const std::int64_t depth = wordsOf<M>(g.k);
    call.b = right.packed + (n0 - right.first_col) * depth + k0 / M::kPerWord * kPanel<M>;
    call.b_panel = depth * kPanel<M>;
  } else if (isWord<M>(g.b.type) && g.b.col == 1 && width % kPanel<M> == 0 && few_rows) {
    call.b = g.b.words<Word<M>>(k0, n0);
    call.b_k = g.b.row;
    call.b_panel = kPanel<M>;
  } else {
    for (std::int64_t j = 0; j < width; j += kPanel<M>)
      packPanel<M>(g.b, k0, num_k, n0 + j, std::min(kPanel<M>, width - j), buffer + j * words);
    call.b = buffer;
    call.b_panel = kPanel<M> * words;
  }
}

/// Computes rows [m0, m0 + rows) and columns [n0, n0 + cols).
template <class M>
void block(const Gemm& g, const Right<M>& right, std::int64_t m0, std::int64_t rows,
           std::int64_t n0, std::int64_t cols) {
  using W = Word<M>;
  const auto& table = micro<M>();
  const std::int64_t panel_group =
      rows <= table.max_rows[kMaxPanels] ? kMaxPanels : std::min(2, table.panels);
  const std::int64_t max_rows = table.max_rows[panel_group];
  const std::int64_t per_block = ceilDiv(rows, ceilDiv(rows, max_rows));
  const std::int64_t depth = g.half_block ? g.half_block : kDepth<M>;
  const std::int64_t words = wordsOf<M>(std::min(depth, g.k));
  const bool direct = isSum<M>(g.c.type) && g.c.col == 1 && g.scale == 1.0f && !g.half_block;
  Workspace workspace;
  W* sums = direct ? static_cast<W*>(g.c.data) + m0 * g.c.row + n0 : workspace.get<W>(rows * cols);
  const std::int64_t ld = direct ? g.c.row : cols;
  W* left_buffer = workspace.get<W>(leftWords(rows, words));
  W* right_buffer = right.packed ? nullptr : workspace.get<W>(panel_group * kPanel<M> * words);
  for (std::int64_t k0 = 0; k0 < g.k || k0 == 0; k0 += depth) {
    const std::int64_t num_k = std::min(depth, g.k - k0);
    const LeftBlock<M> left = packLeft<M>(g.a, m0, rows, k0, num_k, per_block, left_buffer);
    MicroCall<W> call;
    call.a_row = left.row;
    call.a_k = left.k;
    call.kc = wordsOf<M>(num_k);
    call.c_row = ld;
    call.accumulate = k0 > 0 || (direct && g.accumulate);
    for (std::int64_t j = 0; j < cols; j += panel_group * kPanel<M>) {
      call.cols = std::min(panel_group * kPanel<M>, cols - j);
      setRight<M>(g, right, k0, num_k, n0 + j, call.cols, rows <= 2 * per_block, right_buffer,
                  call);
      sweepRows<M>(left, rows, per_block, call, sums + j, ld, ceilDiv(call.cols, kPanel<M>));
    }
    if constexpr (std::is_same_v<M, Floats>) {
      if (g.half_block) simd::roundToHalf(sums, rows * cols);
    }
  }
  if (!direct) finish<M>(g, sums, ld, m0, rows, n0, cols);
}

/// Few rows: tasks share the columns, and each packs its own part of B unless B is packed already.
template <class M>
void wide(ThreadPool* pool, const Gemm& g) {
  constexpr std::int64_t kUnit = kMaxPanels * kPanel<M>;
  const std::int64_t units = ceilDiv(g.n, kUnit);
  const std::int64_t work = std::max<std::int64_t>(1, g.m * g.k * kUnit);
  const std::int64_t grain = ceilDiv(kTaskWork, work);
  Right<M> right;
  if constexpr (std::is_same_v<M, Floats>) right.packed = g.packed;
  forRange(pool, units, grain, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kStep = kColumns / kUnit;
    for (std::int64_t u = begin; u < end; u += kStep) {
      const std::int64_t n0 = u * kUnit;
      block<M>(g, right, 0, g.m, n0, std::min(std::min(end, u + kStep) * kUnit, g.n) - n0);
    }
  });
}

/// Many rows: packs B once, then shares blocks of rows among tasks.
template <class M>
void tall(ThreadPool* pool, const Gemm& g) {
  const std::int64_t threads = pool ? pool->numThreads() : 1;
  const std::int64_t depth = wordsOf<M>(g.k);
  std::int64_t row_blocks = ceilDiv(g.m, kBlockRows);
  if (g.m * g.n * g.k >= kTaskWork * threads)
    row_blocks = std::min(ceilDiv(row_blocks, threads) * threads, ceilDiv(g.m, kMaxRows));
  const std::int64_t rows = ceilDiv(g.m, row_blocks);
  row_blocks = ceilDiv(g.m, rows);
  constexpr auto kSharedWords = kSharedBytes / static_cast<std::int64_t>(sizeof(Word<M>));
  const std::int64_t fits = kSharedWords / std::max<std::int64_t>(depth, 1);
  const std::int64_t chunk = ceilDiv(std::max(fits, kColumns), kColumns) * kColumns;
  for (std::int64_t n0 = 0; n0 < g.n; n0 += chunk) {
    const std::int64_t cols = std::min(chunk, g.n - n0);
    const std::int64_t panels = ceilDiv(cols, kPanel<M>);
    Workspace workspace;
    auto* packed = workspace.get<Word<M>>(panels * kPanel<M> * depth);
    forRange(pool, panels, ceilDiv(1 << 15, kPanel<M> * g.k + 1),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t p = begin; p < end; ++p)
                 packPanel<M>(g.b, 0, g.k, n0 + p * kPanel<M>,
                              std::min(kPanel<M>, cols - p * kPanel<M>),
                              packed + p * kPanel<M> * depth);
             });
    const std::int64_t col_blocks = ceilDiv(cols, kColumns);
    const std::int64_t work = std::max<std::int64_t>(1, rows * std::min(cols, kColumns) * g.k);
    forRange(pool, row_blocks * col_blocks, ceilDiv(kTaskWork, work),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t t = begin; t < end; ++t) {
                 const std::int64_t m0 = t / col_blocks * rows;
                 const std::int64_t j = t % col_blocks * kColumns;
                 block<M>(g, {packed, n0}, m0, std::min(rows, g.m - m0), n0 + j,
                          std::min(kColumns, cols - j));
               }
             });
  }
}

/// One row by columns that are contiguous along k: a dot product for each column.
template <class M>
void dots(ThreadPool* pool, const Gemm& g) {
  using W = Word<M>;
  constexpr std::int64_t kFew = 16;
  const std::int64_t words = wordsOf<M>(g.k);
  Workspace shared;
  const W* row = nullptr;
  if (isWord<M>(g.a.type) && g.a.col == 1) {
    row = g.a.words<W>(0, 0);
  } else {
    W* loaded = shared.get<W>(words);
    loadRow<M>(g.a.data, g.a.type, 0, g.a.col, g.k, loaded);
    row = loaded;
  }
  forRange(pool, g.n, ceilDiv(kTaskWork, std::max<std::int64_t>(g.k, 1)),
           [&](std::int64_t begin, std::int64_t end) {
             Workspace workspace;
             W* column = isWord<M>(g.b.type) ? nullptr : workspace.get<W>(words);
             W few[kFew];
             W* sums = end - begin <= kFew ? few : workspace.get<W>(end - begin);
             for (std::int64_t j = begin; j < end; ++j) {
               const W* b = column;
               if (isWord<M>(g.b.type)) {
                 b = g.b.words<W>(0, j);
               } else {
                 loadRow<M>(g.b.at(0, j), g.b.type, 0, 1, g.k, column);
               }
               sums[j - begin] = micro<M>().dot(row, b, words);
             }
             finish<M>(g, sums, end - begin, 0, 1, begin, end - begin);
           });
}

/// The caller has swapped the operands where that gives contiguous rows.
template <class M>
void multiply(ThreadPool* pool, const Gemm& g) {
  if (isByDot(g)) return dots<M>(pool, g);
  if (g.m <= kBlockRows && g.n > kPanel<M>) return wide<M>(pool, g);
  if (g.m <= kMaxRows) return wide<M>(pool, g);
  tall<M>(pool, g);
}

/// Whether OpenBLAS computes a product: it takes dense float products that are large enough to pay
/// for packing. Halves, strided columns and small products stay with the micro kernels.
bool suitsOpenBlas(const Gemm& g) {
  constexpr std::int64_t kLeastWork = 1 << 28;  // multiply-adds; below, ours are as fast
  constexpr std::int64_t kLeastSide = 32;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto dense = [&](const auto& matrix) {
    return matrix.type == ElementType::kFloat && std::min(matrix.row, matrix.col) == 1 &&
           std::max(matrix.row, matrix.col) <= kMost && std::max(matrix.row, matrix.col) > 1;
  };
  return dense(g.a) && dense(g.b) && g.c.type == ElementType::kFloat && g.c.col == 1 &&
         g.c.row >= g.n && g.half_block == 0 && std::min({g.m, g.n, g.k}) >= kLeastSide &&
         std::max({g.m, g.n, g.k, g.c.row}) <= kMost && g.m * g.n * g.k >= kLeastWork;
}

/// Shares blocks of C, whose size depends on C alone, among the threads.
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
      call.a = g.a.words<float>(m0, 0);
      call.lda = std::max(g.a.row, g.a.col);
      call.b = g.b.words<float>(0, n0);
      call.ldb = std::max(g.b.row, g.b.col);
      call.accumulate = g.accumulate;
      call.c = static_cast<float*>(g.c.data) + m0 * g.c.row + n0;
      call.ldc = g.c.row;
      sgemm(call);
    }
  });
}

}  // namespace

bool suitsLanes(const Gemm& g, std::int64_t count) {
  constexpr std::int64_t kFewest = 8;
  // Longer dot products are added in lanes of their own.
  const std::int64_t most_in_dot = isa() == Isa::kBaseline ? 3 : 7;
  const bool floats = g.a.type == ElementType::kFloat && g.b.type == ElementType::kFloat &&
                      g.c.type == ElementType::kFloat;
  return floats && g.scale == 1.0f && !g.accumulate && g.half_block == 0 && count >= kFewest &&
         std::max({g.m * g.k, g.k * g.n, g.m * g.n}) <= kMostSmallElements &&
         (g.k <= most_in_dot || !isByDot(oriented(g)));
}

std::int64_t packedSize(std::int64_t k, std::int64_t n) {
  return ceilDiv(n, kPanel<Floats>) * kPanel<Floats> * k;
}

void packRight(const ConstMatrix& b, std::int64_t k, std::int64_t n, float* packed) {
  for (std::int64_t j = 0; j < n; j += kPanel<Floats>)
    packPanel<Floats>(b, 0, k, j, std::min(kPanel<Floats>, n - j), packed + j * k);
}

Gemm oriented(const Gemm& problem) {
  Gemm g = problem;
  const bool swap = g.n == 1 ? g.m > 1 : (g.c.col != 1 && g.c.row == 1 && g.m > 1);
  if (!swap) return g;
  std::swap(g.m, g.n);
  g.a = problem.b.transposed();
  g.b = problem.a.transposed();
  std::swap(g.c.row, g.c.col);
  g.packed = nullptr;
  return g;
}

bool isByDot(const Gemm& g) {
  return g.m == 1 && g.b.row == 1 && g.k > 1 && !g.half_block && (g.b.col != 1 || g.n == 1);
}

void gemm(ThreadPool* pool, const Gemm& problem) {
  if (problem.m == 0 || problem.n == 0) return;
  Gemm g = oriented(problem);
  if (suitsOpenBlas(g)) return byOpenBlas(pool, g);
  const Arithmetic arithmetic = arithmeticOf(g.a.type, g.b.type, g.c.type);
  if (arithmetic != Arithmetic::kFloats) g.half_block = 0;
  withArithmetic(arithmetic, [&]<class M>(M) { multiply<M>(pool, g); });
}

}  // namespace ipujax::engine::blas
