#include "engine/simd/VectorOps.hpp"

#include <bit>
#include <stdexcept>
#include <string>

#include "engine/simd/Isa.hpp"

namespace ipujax::engine::simd {

IPUJAX_DECLARE_SIMD(void halfToFloat(const std::uint16_t*, float*, std::int64_t))
IPUJAX_DECLARE_SIMD(void floatToHalf(const float*, std::uint16_t*, std::int64_t))
IPUJAX_DECLARE_SIMD(void roundToHalf(float*, std::int64_t))
IPUJAX_DECLARE_SIMD(bool reduceContiguous(Reduction, ElementType, const void*, void*, std::int64_t))
IPUJAX_DECLARE_SIMD(bool accumulate(Reduction, ElementType, void*, const void*, std::int64_t))
IPUJAX_DECLARE_SIMD(bool accumulateHalfToFloat(Reduction, float*, const std::uint16_t*,
                                               std::int64_t))
IPUJAX_DECLARE_SIMD(void randomBits(void*, std::int64_t, std::uint64_t, std::uint64_t))
IPUJAX_DECLARE_SIMD(void fill(void*, const void*, std::size_t, std::int64_t))
IPUJAX_DECLARE_SIMD(void gatherStrided(const void*, std::int64_t, void*, std::size_t, std::int64_t))
IPUJAX_DECLARE_SIMD(void scatterStrided(const void*, void*, std::int64_t, std::size_t,
                                        std::int64_t))
IPUJAX_DECLARE_SIMD(void transpose2d(const void*, std::int64_t, void*, std::int64_t, std::int64_t,
                                     std::int64_t, std::size_t))

namespace {
[[noreturn]] void noLoop(const char* where, ElementType type) {
  throw std::invalid_argument(std::string("[simd::") + where +
                              "] needs a type that has the reduction; got " + nameOf(type) +
                              ". Use and/or on integers and bool only.");
}
}  // namespace

void halfToFloat(const std::uint16_t* in, float* out, std::int64_t n) {
  static const auto function = IPUJAX_PICK(halfToFloat);  // rows can be short: one look-up
  function(in, out, n);
}
void floatToHalf(const float* in, std::uint16_t* out, std::int64_t n) {
  static const auto function = IPUJAX_PICK(floatToHalf);
  function(in, out, n);
}
void roundToHalf(float* values, std::int64_t n) { IPUJAX_PICK(roundToHalf)(values, n); }
float halfToFloat(std::uint16_t bits) {
  float value = 0;
  baseline::halfToFloat(&bits, &value, 1);
  return value;
}
std::uint16_t floatToHalf(float value) {
  std::uint16_t bits = 0;
  baseline::floatToHalf(&value, &bits, 1);
  return bits;
}
void reduceContiguous(Reduction op, ElementType type, const void* in, void* result,
                      std::int64_t n) {
  if (!IPUJAX_PICK(reduceContiguous)(op, type, in, result, n)) noLoop("reduceContiguous", type);
}
void accumulate(Reduction op, ElementType type, void* acc, const void* in, std::int64_t n) {
  if (!IPUJAX_PICK(accumulate)(op, type, acc, in, n)) noLoop("accumulate", type);
}
void accumulateHalfToFloat(Reduction op, float* acc, const std::uint16_t* in, std::int64_t n) {
  if (!IPUJAX_PICK(accumulateHalfToFloat)(op, acc, in, n))
    noLoop("accumulateHalfToFloat", ElementType::kHalf);
}
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
void transpose2d(const void* in, std::int64_t in_stride, void* out, std::int64_t out_stride,
                 std::int64_t rows, std::int64_t cols, std::size_t bytes) {
  IPUJAX_PICK(transpose2d)(in, in_stride, out, out_stride, rows, cols, bytes);
}

}  // namespace ipujax::engine::simd
