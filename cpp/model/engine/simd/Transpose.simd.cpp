#include "engine/simd/Transpose.hpp"

#include <algorithm>
#include <cstring>

namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

// 16-byte vectors transpose N x N blocks (N = 16 / size) in log2(N) interleaving stages.
template <class T>
struct Vector {
  static constexpr int kN = 16 / sizeof(T);
  typedef T Type __attribute__((vector_size(16)));
};

template <class T, class V = typename Vector<T>::Type>
inline V low(V a, V b) {
  if constexpr (sizeof(T) == 8) {
    return __builtin_shufflevector(a, b, 0, 2);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
  } else if constexpr (sizeof(T) == 2) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  } else {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
}

template <class T, class V = typename Vector<T>::Type>
inline V high(V a, V b) {
  if constexpr (sizeof(T) == 8) {
    return __builtin_shufflevector(a, b, 1, 3);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
  } else if constexpr (sizeof(T) == 2) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  } else {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                   31);
  }
}

// Pairing vector i with i + N/2 and interleaving, log2(N) times, is a transpose.
template <class T>
inline void block(const std::byte* src, std::int64_t src_col, std::byte* dst,
                  std::int64_t dst_row) {
  using V = typename Vector<T>::Type;
  constexpr int kN = Vector<T>::kN;
  V a[kN];
  V b[kN];
  for (int i = 0; i < kN; ++i) std::memcpy(&a[i], src + i * src_col, sizeof(V));
  for (int stage = 1; stage < kN; stage *= 2) {
    for (int i = 0; i < kN / 2; ++i) {
      b[2 * i] = low<T>(a[i], a[i + kN / 2]);
      b[2 * i + 1] = high<T>(a[i], a[i + kN / 2]);
    }
    for (int i = 0; i < kN; ++i) a[i] = b[i];
  }
  for (int i = 0; i < kN; ++i) std::memcpy(dst + i * dst_row, &a[i], sizeof(V));
}

template <class T>
inline void scalar(const std::byte* src, std::byte* dst, std::int64_t rows, std::int64_t cols,
                   std::int64_t src_col, std::int64_t dst_row) {
  constexpr std::int64_t kSize = sizeof(T);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      std::memcpy(dst + r * dst_row + c * kSize, src + r * kSize + c * src_col, kSize);
    }
  }
}

// Whole cache lines go through a small tile, so that strides of a power of two, whose lines share
// one cache set, read and write each line once.
template <class T>
void transpose(const std::byte* src, std::byte* dst, std::int64_t rows, std::int64_t cols,
               std::int64_t src_col, std::int64_t dst_row) {
  constexpr std::int64_t kSize = sizeof(T);
  constexpr std::int64_t kN = Vector<T>::kN;
  constexpr std::int64_t kLine = 64 / kSize;
  alignas(64) std::byte tile[kLine * 64];
  for (std::int64_t r = 0; r < rows; r += kLine) {
    const std::int64_t nr = std::min(kLine, rows - r);
    for (std::int64_t c = 0; c < cols; c += kLine) {
      const std::int64_t nc = std::min(kLine, cols - c);
      const std::byte* s = src + r * kSize + c * src_col;
      std::byte* d = dst + r * dst_row + c * kSize;
      if (nr == kLine && nc == kLine) {
        for (std::int64_t j = 0; j < kLine; j += kN) {
          for (std::int64_t i = 0; i < kLine; i += kN) {
            block<T>(s + i * kSize + j * src_col, src_col, tile + i * 64 + j * kSize, 64);
          }
        }
        for (std::int64_t i = 0; i < kLine; ++i) std::memcpy(d + i * dst_row, tile + i * 64, 64);
        continue;
      }
      const std::int64_t br = nr / kN * kN;
      const std::int64_t bc = nc / kN * kN;
      for (std::int64_t i = 0; i < br; i += kN) {
        for (std::int64_t j = 0; j < bc; j += kN) {
          block<T>(s + i * kSize + j * src_col, src_col, d + i * dst_row + j * kSize, dst_row);
        }
      }
      scalar<T>(s + bc * src_col, d + bc * kSize, br, nc - bc, src_col, dst_row);
      scalar<T>(s + br * kSize, d + br * dst_row, nr - br, nc, src_col, dst_row);
    }
  }
}

/// Copies every second element, such as the real parts of complex numbers. Elements need not be
/// aligned: a pair of floats counts as one element of 8 bytes.
template <class T>
void fromPairs(const std::byte* src, std::byte* dst, std::int64_t n) {
  constexpr std::int64_t kSize = sizeof(T);
  std::int64_t i = 0;
  if constexpr (kSize == 4) {
    typedef T V __attribute__((vector_size(32)));
    for (; i + 8 < n; i += 8) {  // not <=: the last vector would end one element past the pairs
      V a, b;
      std::memcpy(&a, src + 2 * i * kSize, sizeof a);
      std::memcpy(&b, src + (2 * i + 8) * kSize, sizeof b);
      a = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
      std::memcpy(dst + i * kSize, &a, sizeof a);
    }
  }
  for (; i < n; ++i) std::memcpy(dst + i * kSize, src + 2 * i * kSize, kSize);
}

/// Copies to every second element. Writes the elements between back unchanged, which is safe: only
/// one copy at a time writes to a range, and its threads' ranges do not meet.
template <class T>
void toPairs(const std::byte* src, std::byte* dst, std::int64_t n) {
  constexpr std::int64_t kSize = sizeof(T);
  std::int64_t i = 0;
  if constexpr (kSize == 4) {
    typedef T V __attribute__((vector_size(32)));
    for (; i + 8 < n; i += 8) {
      V a, first, second;
      std::memcpy(&a, src + i * kSize, sizeof a);
      std::memcpy(&first, dst + 2 * i * kSize, sizeof first);
      std::memcpy(&second, dst + (2 * i + 8) * kSize, sizeof second);
      first = __builtin_shufflevector(a, first, 0, 9, 1, 11, 2, 13, 3, 15);
      second = __builtin_shufflevector(a, second, 4, 9, 5, 11, 6, 13, 7, 15);
      std::memcpy(dst + 2 * i * kSize, &first, sizeof first);
      std::memcpy(dst + (2 * i + 8) * kSize, &second, sizeof second);
    }
  }
  for (; i < n; ++i) std::memcpy(dst + 2 * i * kSize, src + i * kSize, kSize);
}

template <class T>
void strided(const std::byte* src, std::byte* dst, std::int64_t rows, std::int64_t cols,
             std::int64_t src_row, std::int64_t src_col, std::int64_t dst_row,
             std::int64_t dst_col) {
  constexpr std::int64_t kSize = sizeof(T);
  for (std::int64_t r = 0; r < rows; ++r, src += src_row, dst += dst_row) {
    if (dst_col == kSize && src_col == 2 * kSize) {
      fromPairs<T>(src, dst, cols);
    } else if (dst_col == 2 * kSize && src_col == kSize) {
      toPairs<T>(src, dst, cols);
    } else if (dst_col == kSize && src_col == -kSize) {
      for (std::int64_t c = 0; c < cols; ++c) std::memcpy(dst + c * kSize, src - c * kSize, kSize);
    } else if (dst_col == kSize) {
      for (std::int64_t c = 0; c < cols; ++c)
        std::memcpy(dst + c * kSize, src + c * src_col, kSize);
    } else {
      for (std::int64_t c = 0; c < cols; ++c) {
        std::memcpy(dst + c * dst_col, src + c * src_col, kSize);
      }
    }
  }
}

template <class T>
void fill(const std::byte* src, std::byte* dst, std::int64_t rows, std::int64_t cols,
          std::int64_t src_row, std::int64_t dst_row) {
  for (std::int64_t r = 0; r < rows; ++r, src += src_row, dst += dst_row) {
    T value;
    std::memcpy(&value, src, sizeof(T));
    for (std::int64_t c = 0; c < cols; ++c) std::memcpy(dst + c * sizeof(T), &value, sizeof(T));
  }
}

}  // namespace

extern const CopyKernels kCopyKernels;
const CopyKernels kCopyKernels = {
    {transpose<std::uint8_t>, transpose<std::uint16_t>, transpose<std::uint32_t>,
     transpose<std::uint64_t>},
    {strided<std::uint8_t>, strided<std::uint16_t>, strided<std::uint32_t>, strided<std::uint64_t>},
    {fill<std::uint8_t>, fill<std::uint16_t>, fill<std::uint32_t>, fill<std::uint64_t>},
};

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
