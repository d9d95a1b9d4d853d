#include "engine/kernels/reduce/ReduceArg.hpp"

#include <limits>

namespace ipujax::engine {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

template <class T>
ArgMatch scan(const void* values, const void* indices, const void* wanted, std::int64_t n) {
  const T* x = static_cast<const T*>(values);
  const std::int32_t* index = static_cast<const std::int32_t*>(indices);
  const T w = *static_cast<const T*>(wanted);
  ArgMatch match;
  constexpr std::int64_t kBlock = 1024;
  constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
  std::int32_t best = kNone;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int32_t size = static_cast<std::int32_t>(n - begin < kBlock ? n - begin : kBlock);
    std::int32_t last = -1;
    for (std::int32_t r = 0; r < size; ++r) {
      const bool equal = x[begin + r] == w;
      const std::int32_t candidate = equal ? index[begin + r] : kNone;
      best = candidate < best ? candidate : best;
      const std::int32_t position = equal ? r : -1;
      last = position > last ? position : last;
    }
    if (last >= 0) match.last = begin + last;
  }
  match.index = best;
  return match;
}

}  // namespace

extern const ArgTable kArgTable;  // a const is local otherwise
const ArgTable kArgTable{scan<float>, scan<std::int32_t>};

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine
