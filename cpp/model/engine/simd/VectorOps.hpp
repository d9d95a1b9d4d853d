#pragma once
#include <cstddef>
#include <cstdint>

/// Vector loops for other kernels, chosen once for this CPU. Pointers are to elements of the named
/// type, with any alignment; n >= 0; source and destination are the same memory or do not overlap.
namespace ipujax::engine::simd {

void halfToFloat(const std::uint16_t* in, float* out, std::int64_t n);
void floatToHalf(const float* in, std::uint16_t* out, std::int64_t n);  ///< nearest even
void roundToHalf(float* values, std::int64_t n);  ///< to the nearest half, kept as float

/// n words of 32 random bits: word k depends on `seed` and on `first` + k only.
void randomBits(void* out, std::int64_t n, std::uint64_t seed, std::uint64_t first);

/// out[k] = value, by element size (1, 2, 4, 8 bytes).
void fill(void* out, const void* value, std::size_t elementBytes, std::int64_t n);
/// out[k] = in[k * stride]: strides in elements, any sign, 0 allowed.
void gatherStrided(const void* in, std::int64_t stride, void* out, std::size_t elementBytes,
                   std::int64_t n);
/// out[k * stride] = in[k].
void scatterStrided(const void* in, void* out, std::int64_t stride, std::size_t elementBytes,
                    std::int64_t n);

}  // namespace ipujax::engine::simd
