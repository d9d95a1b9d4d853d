#include "poplin/ConvGroups.hpp"

namespace poplin::host::IPUJAX_ISA_NAMESPACE {

void groupLine(float* sums, const float* in, std::int64_t step, const float* weights,
               std::int64_t groups, std::int64_t count) {
  for (std::int64_t x = 0; x < count; ++x) {
    float* __restrict s = sums + x * groups;
    const float* v = in + x * step;
    for (std::int64_t g = 0; g < groups; ++g) s[g] += v[g] * weights[g];
  }
}

}  // namespace poplin::host::IPUJAX_ISA_NAMESPACE
