#pragma once
#if defined(__SSE2__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace ipujax::runtime {

/// While it exists, its thread computes as IEEE 754 specifies: subnormal numbers are kept, and
/// results are rounded to nearest even. Callers may use other modes: jaxlib's threads flush
/// subnormals to zero, in operands too. A thread started meanwhile inherits this environment.
class FloatEnvironment {
 public:
  FloatEnvironment();
  ~FloatEnvironment();
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr unsigned kDefault = 0x1f80;  // all exceptions masked, nothing flushed
  unsigned callers_;
#else
  std::fenv_t callers_;
#endif
};

#if defined(__SSE2__)
inline FloatEnvironment::FloatEnvironment() : callers_(_mm_getcsr()) { _mm_setcsr(kDefault); }
inline FloatEnvironment::~FloatEnvironment() { _mm_setcsr(callers_); }
#else
inline FloatEnvironment::FloatEnvironment() {
  std::fegetenv(&callers_);
  std::fesetenv(FE_DFL_ENV);
}
inline FloatEnvironment::~FloatEnvironment() { std::fesetenv(&callers_); }
#endif

}  // namespace ipujax::runtime
