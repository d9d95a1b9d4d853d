// Functions that results in ElementwiseOps.def call, written with C++14's library. popops' codelets
// include them, and MapCodeletText.cpp writes them into codelets that it generates. A function may
// call earlier ones. The file that includes this defines FUNCTION(name, definition).
#define IPUJAX_STANDARD(name, standard) \
  FUNCTION(name, inline float name(float x) { return std::standard(x); })
IPUJAX_STANDARD(absOf, fabs)
IPUJAX_STANDARD(acosFloat, acos)
IPUJAX_STANDARD(acoshFloat, acosh)
IPUJAX_STANDARD(asinFloat, asin)
IPUJAX_STANDARD(asinhFloat, asinh)
IPUJAX_STANDARD(atanFloat, atan)
IPUJAX_STANDARD(atanhFloat, atanh)
IPUJAX_STANDARD(cbrtFloat, cbrt)
IPUJAX_STANDARD(coshFloat, cosh)
IPUJAX_STANDARD(erfFloat, erf)
IPUJAX_STANDARD(erfcFloat, erfc)
IPUJAX_STANDARD(expFloat, exp)
IPUJAX_STANDARD(exp2Float, exp2)
IPUJAX_STANDARD(expm1Float, expm1)
IPUJAX_STANDARD(logFloat, log)
IPUJAX_STANDARD(log1pFloat, log1p)
IPUJAX_STANDARD(logGamma, lgamma)
IPUJAX_STANDARD(sinhFloat, sinh)
IPUJAX_STANDARD(tanhFloat, tanh)
FUNCTION(atan2Float,
  inline float atan2Float(float y, float x) { return std::atan2(y, x); })
FUNCTION(powLoops,
  inline float powLoops(float x, float y) { return std::pow(x, y); })
FUNCTION(remainderLoops,
  inline float remainderLoops(float x, float y) { return std::fmod(x, y); })
FUNCTION(withSign,
  inline float withSign(float x, float sign) { return std::copysign(x, sign); })
FUNCTION(sigmoidFloat,
  inline float sigmoidFloat(float x) { return 1.0f / (1.0f + std::exp(-x)); })
FUNCTION(geluErfFloat,
  inline float geluErfFloat(float x) {
    const float share = 0.5f * (1.0f + std::erf(x * 0.70710678f));
    return share == 0.0f ? -0.0f : x * share;
  })
FUNCTION(geluFloat,
  inline float geluFloat(float x) {
    return x * sigmoidFloat(2 * 0.79788456f * (x + 0.044715f * x * x * x));
  })
FUNCTION(bitsOf,
  inline unsigned bitsOf(float x) {
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
  })
FUNCTION(sameBits,
  template <class To, class From>
  inline To sameBits(From from) {
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
  })
// +0 is larger than -0; if either operand is a NaN, so is the result.
FUNCTION(maximumOf,
  inline float maximumOf(float x, float y) {
    if (x == y) return std::signbit(x) ? y : x;
    return x != x || x > y ? x : y;
  })
FUNCTION(minimumOf,
  inline float minimumOf(float x, float y) {
    if (x == y) return std::signbit(x) ? x : y;
    return x != x || x < y ? x : y;
  })
FUNCTION(kBits,
  template <class T>
  constexpr int kBits = static_cast<int>(sizeof(T)) * 8;)
FUNCTION(onesOf,
  template <class U>
  inline U onesOf(U x) {
    U ones = 0;
    for (; x != 0; x &= static_cast<U>(x - 1)) ++ones;
    return ones;
  })
FUNCTION(leadingZeros,
  template <class T>
  inline int leadingZeros(T x) {
    const auto bits = static_cast<std::make_unsigned_t<T>>(x);
    int zeros = 0;
    while (zeros < kBits<T> && ((bits >> (kBits<T> - 1 - zeros)) & 1u) == 0) ++zeros;
    return zeros;
  })
// Results that an IPU leaves undefined: x / 0 = -1, x % 0 = x, lowest / -1 = lowest.
FUNCTION(quotientOf,
  template <class T>
  inline T quotientOf(T x, T y) {
    if (y == 0) return static_cast<T>(-1);
    const bool open = std::is_signed<T>::value && y == static_cast<T>(-1) &&
                      x == std::numeric_limits<T>::min();
    return open ? x : static_cast<T>(x / y);
  })
FUNCTION(remainderOf,
  template <class T>
  inline T remainderOf(T x, T y) {
    if (y == 0) return x;
    const bool open = std::is_signed<T>::value && y == static_cast<T>(-1);
    return open ? static_cast<T>(0) : static_cast<T>(x % y);
  })
FUNCTION(powerOf,
  template <class T>
  inline T powerOf(T x, T y) {
    using U = std::make_unsigned_t<T>;
    if (std::is_signed<T>::value && y < 0) {
      if (x == static_cast<T>(-1)) return (y & 1) ? x : static_cast<T>(1);
      return static_cast<T>(x == 1);
    }
    unsigned long long base = static_cast<U>(x), result = 1;
    for (auto rest = static_cast<U>(y); rest != 0; rest >>= 1) {
      if (rest & 1) result *= base;
      base *= base;
    }
    return static_cast<T>(result);
  })
FUNCTION(clampOf,
  template <class T>
  inline T clampOf(T x, T low, T high) {
    const T raised = x < low ? low : x;
    return raised > high ? high : raised;
  })
// Truncates and saturates; NaN gives 0.
FUNCTION(toInteger,
  template <class T>
  inline T toInteger(float x) {
    constexpr T kLowest = std::numeric_limits<T>::min();
    constexpr T kHighest = std::numeric_limits<T>::max();
    if (x != x) return 0;
    if (x <= static_cast<float>(kLowest)) return kLowest;
    return x >= static_cast<float>(kHighest) ? kHighest : static_cast<T>(x);
  })
#undef IPUJAX_STANDARD
