#pragma once
#include <cstdint>

#include "engine/simd/Isa.hpp"

namespace poplin::host {

/// One kernel element for one line of outputs: sums[x][g] += in[x * step + g] * weights[g].
using GroupLineFn = void (*)(float* sums, const float* in, std::int64_t step, const float* weights,
                             std::int64_t groups, std::int64_t count);
IPUJAX_DECLARE_SIMD(void groupLine(float* sums, const float* in, std::int64_t step,
                                   const float* weights, std::int64_t groups, std::int64_t count))

/// One output, a line of kernel elements: sums[g] += sum over k of in[k * step + g] *
/// weights[k * groups + g].
using GroupSumFn = void (*)(float* sums, const float* in, std::int64_t step, const float* weights,
                            std::int64_t groups, std::int64_t count);
IPUJAX_DECLARE_SIMD(void groupSum(float* sums, const float* in, std::int64_t step,
                                  const float* weights, std::int64_t groups, std::int64_t count))

}  // namespace poplin::host
