#include "engine/simd/VectorOps.hpp"

#include "engine/simd/Isa.hpp"

namespace ipujax::engine::simd {

IPUJAX_DECLARE_SIMD(void halfToFloat(const std::uint16_t*, float*, std::int64_t))
IPUJAX_DECLARE_SIMD(void floatToHalf(const float*, std::uint16_t*, std::int64_t))
IPUJAX_DECLARE_SIMD(void roundToHalf(float*, std::int64_t))
IPUJAX_DECLARE_SIMD(void randomBits(void*, std::int64_t, std::uint64_t, std::uint64_t))
IPUJAX_DECLARE_SIMD(void fill(void*, const void*, std::size_t, std::int64_t))
IPUJAX_DECLARE_SIMD(void gatherStrided(const void*, std::int64_t, void*, std::size_t, std::int64_t))
IPUJAX_DECLARE_SIMD(void scatterStrided(const void*, void*, std::int64_t, std::size_t,
                                        std::int64_t))

void halfToFloat(const std::uint16_t* in, float* out, std::int64_t n) {
  static const auto function = IPUJAX_PICK(halfToFloat);  // rows can be short: look up once
  function(in, out, n);
}
void floatToHalf(const float* in, std::uint16_t* out, std::int64_t n) {
  static const auto function = IPUJAX_PICK(floatToHalf);
  function(in, out, n);
}
void roundToHalf(float* values, std::int64_t n) { IPUJAX_PICK(roundToHalf)(values, n); }
void randomBits(void* out, std::int64_t n, std::uint64_t seed, std::uint64_t first) {
  IPUJAX_PICK(randomBits)(out, n, seed, first);
}
void fill(void* out, const void* value, std::size_t bytes, std::int64_t n) {
  IPUJAX_PICK(fill)(out, value, bytes, n);
}
void gatherStrided(const void* in, std::int64_t stride, void* out, std::size_t bytes,
                   std::int64_t n) {
  IPUJAX_PICK(gatherStrided)(in, stride, out, bytes, n);
}
void scatterStrided(const void* in, void* out, std::int64_t stride, std::size_t bytes,
                    std::int64_t n) {
  IPUJAX_PICK(scatterStrided)(in, out, stride, bytes, n);
}

}  // namespace ipujax::engine::simd
