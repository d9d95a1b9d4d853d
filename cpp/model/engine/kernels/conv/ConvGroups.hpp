#pragma once
#include <cstdint>

#include "engine/simd/Isa.hpp"

/// Sums whose vectors run along the groups; W is float, double, or an unsigned integer.
namespace ipujax::engine::convolution {

/// One kernel element for one line of outputs: sums[x][g] += in[x * step + g] * weights[g].
IPUJAX_DECLARE_SIMD(template <class W> void groupLine(W* sums, const W* in, std::int64_t step,
                                                      const W* weights, std::int64_t groups,
                                                      std::int64_t count))

/// One output, a line of kernel elements: sums[g] += sum over k of in[k * step + g] *
/// weights[k * groups + g].
IPUJAX_DECLARE_SIMD(template <class W> void groupSum(W* sums, const W* in, std::int64_t step,
                                                     const W* weights, std::int64_t groups,
                                                     std::int64_t count))

template <class W>
using GroupFn = void (*)(W* sums, const W* in, std::int64_t step, const W* weights,
                         std::int64_t groups, std::int64_t count);

}  // namespace ipujax::engine::convolution
