#include "engine/simd/Isa.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace ipujax::engine {

namespace {
Isa detect() {
#if defined(IPUJAX_X86)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return Isa::kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::kAvx2;
#endif
  return Isa::kBaseline;
}

Isa limited() {
  const Isa best = detect();
  const char* text = std::getenv("IPUJAX_MAX_ISA");
  if (!text || !*text) return best;
  const std::string wanted = text;
  Isa limit = Isa::kBaseline;
  if (wanted == "avx512")
    limit = Isa::kAvx512;
  else if (wanted == "avx2")
    limit = Isa::kAvx2;
  else if (wanted != "baseline")
    throw std::invalid_argument("[IPUJAX_MAX_ISA] needs baseline, avx2 or avx512; got '" + wanted +
                                "'. Correct or unset the environment variable.");
  return limit < best ? limit : best;
}
}  // namespace

Isa isa() {
  static const Isa chosen = limited();
  return chosen;
}

}  // namespace ipujax::engine
