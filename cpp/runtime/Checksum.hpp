#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ipujax::runtime {

/// The sum of an array's elements, read as unsigned integers, and the sum of each element times its
/// position from 1, both modulo 2^32. Any single altered bit and any two swapped elements change
/// it. Programs compute the same for arrays that arrive (ipujax/api/feed/checksums.py).
using Checksum = std::array<std::uint32_t, 2>;

template <class Word>
Checksum checksumOfWords(std::span<const std::byte> bytes) {
  Checksum sums{};
  std::uint32_t position = 1;
  for (std::size_t i = 0; i + sizeof(Word) <= bytes.size(); i += sizeof(Word), ++position) {
    Word word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    sums[0] += word;
    sums[1] += position * word;
  }
  return sums;
}

/// `width`: bytes per element, 1, 2 or 4; wider elements are read as several words of 4 bytes.
inline Checksum checksumOf(std::span<const std::byte> bytes, std::size_t width) {
  if (width == 1) return checksumOfWords<std::uint8_t>(bytes);
  if (width == 2) return checksumOfWords<std::uint16_t>(bytes);
  return checksumOfWords<std::uint32_t>(bytes);
}

}  // namespace ipujax::runtime
