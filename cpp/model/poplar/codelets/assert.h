// Included whenever <assert.h> is: a failed assertion becomes an error of the program and does not
// end the process.
#ifndef IPUJAX_ASSERT
#define IPUJAX_ASSERT
#include <stdexcept>
#include <string>
namespace ipujax_assert {
[[noreturn]] inline void fail(const char* condition, const char* file, int line) {
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": assert(" +
                           condition + ")");
}
}  // namespace ipujax_assert
#endif
#undef assert
#ifdef NDEBUG
#define assert(...) ((void)0)
#else
#define assert(...) \
  ((__VA_ARGS__) ? (void)0 : ipujax_assert::fail(#__VA_ARGS__, __FILE__, __LINE__))
#endif
