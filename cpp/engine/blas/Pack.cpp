#include "engine/blas/Pack.hpp"

#include <algorithm>
#include <cstring>

#include "engine/blas/MicroKernel.hpp"
#include "engine/blas/Scratch.hpp"

namespace ipujax::engine::blas {
namespace {

constexpr std::int64_t kRowGap = 16;  ///< keeps packed rows off one another's cache sets
constexpr std::int64_t kPageFloats = 1024;

}  // namespace

void loadRow(const void* data, ElementType type, std::int64_t offset, std::int64_t stride,
             std::int64_t count, float* out) {
  if (type == ElementType::kFloat) {
    const float* in = static_cast<const float*>(data) + offset;
    if (stride == 1) {
      std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(float));
    } else {
      for (std::int64_t i = 0; i < count; ++i) out[i] = in[i * stride];
    }
    return;
  }
  const std::uint16_t* in = static_cast<const std::uint16_t*>(data) + offset;
  if (stride == 1) return micro().halfToFloat(in, out, count);
  constexpr std::int64_t kChunk = 64;
  std::uint16_t gathered[kChunk];
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t n = std::min(kChunk, count - done);
    for (std::int64_t i = 0; i < n; ++i) gathered[i] = in[(done + i) * stride];
    micro().halfToFloat(gathered, out + done, n);
  }
}

void storeRow(const float* in, void* data, ElementType type, std::int64_t offset,
              std::int64_t stride, std::int64_t count) {
  if (type == ElementType::kFloat) {
    float* out = static_cast<float*>(data) + offset;
    if (stride == 1) {
      std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(float));
    } else {
      for (std::int64_t i = 0; i < count; ++i) out[i * stride] = in[i];
    }
    return;
  }
  std::uint16_t* out = static_cast<std::uint16_t*>(data) + offset;
  if (stride == 1) return micro().floatToHalf(in, out, count);
  constexpr std::int64_t kChunk = 64;
  std::uint16_t rounded[kChunk];
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t n = std::min(kChunk, count - done);
    micro().floatToHalf(in + done, rounded, n);
    for (std::int64_t i = 0; i < n; ++i) out[(done + i) * stride] = rounded[i];
  }
}

void roundToHalf(float* values, std::int64_t count) {
  constexpr std::int64_t kChunk = 256;
  std::uint16_t rounded[kChunk];
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t n = std::min(kChunk, count - done);
    micro().floatToHalf(values + done, rounded, n);
    micro().halfToFloat(rounded, values + done, n);
  }
}

void packPanel(const ConstMatrix& b, std::int64_t k, std::int64_t kc, std::int64_t col,
               std::int64_t cols, float* panel) {
  if (b.row == 1 && b.col != 1) {
    if (b.isFloat()) return micro().packTransposed(b.floats(k, col), b.col, kc, cols, panel);
    float* rows = scratch(ScratchUse::kRow, kc * kPanel);
    for (std::int64_t j = 0; j < cols; ++j)
      micro().halfToFloat(b.halves(k, col + j), rows + j * kc, kc);
    return micro().packTransposed(rows, kc, kc, cols, panel);
  }
  if (b.isFloat() && b.col == 1 && cols == kPanel) {
    const float* in = b.floats(k, col);
    for (std::int64_t i = 0; i < kc; ++i)
      std::memcpy(panel + i * kPanel, in + i * b.row, kPanel * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < kc; ++i) {
    float* row = panel + i * kPanel;
    loadRow(b.data, b.type, (k + i) * b.row + col * b.col, b.col, cols, row);
    std::fill(row + cols, row + kPanel, 0.0f);
  }
}

std::int64_t leftScratch(std::int64_t rows, std::int64_t kc) {
  return (rows + kMaxRows) * (kc + kRowGap);
}

LeftBlock packLeft(const ConstMatrix& a, std::int64_t m, std::int64_t rows, std::int64_t k,
                   std::int64_t kc, std::int64_t per_block, float* buffer) {
  if (a.row == 1 && a.col != 1) {  // columns are contiguous: panels of rows, one row block each
    float* line = scratch(ScratchUse::kRow, rows);
    for (std::int64_t i = 0; i < kc; ++i) {
      const float* source = line;
      if (a.isFloat()) {
        source = a.floats(m, k + i);
      } else {
        micro().halfToFloat(a.halves(m, k + i), line, rows);
      }
      for (std::int64_t r = 0; r < rows; r += per_block)
        std::memcpy(buffer + r * kc + i * per_block, source + r,
                    static_cast<std::size_t>(std::min(per_block, rows - r)) * sizeof(float));
    }
    return {buffer, 1, per_block, per_block * kc};
  }
  if (a.isFloat() && a.col == 1 && (a.row % kPageFloats != 0 || rows <= 4))
    return {a.floats(m, k), a.row, 1, per_block * a.row};
  const std::int64_t stride = kc + kRowGap;
  for (std::int64_t r = 0; r < rows; ++r)
    loadRow(a.data, a.type, (m + r) * a.row + k * a.col, a.col, kc, buffer + r * stride);
  return {buffer, stride, 1, per_block * stride};
}

}  // namespace ipujax::engine::blas
