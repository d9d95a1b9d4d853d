#pragma once
#include <cmath>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

/// A small test harness: TEST(name) { CHECK(x); CHECK_EQ(a, b); CHECK_NEAR(a, b, tol);
/// CHECK_THROWS(e, text); }
namespace check {

struct Test {
  const char* name;
  void (*run)();
};
std::vector<Test>& tests();
struct Register {
  Register(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Parts>
[[noreturn]] void fail(const char* file, int line, const Parts&... parts) {
  std::ostringstream os;
  os << file << ":" << line << ": ";
  (os << ... << parts);
  throw Failure(os.str());
}

template <class A, class B>
void equal(const A& a, const B& b, const char* text, const char* file, int line) {
  if (!(a == b)) fail(file, line, text, ": ", a, " != ", b);
}

inline void near(double a, double b, double tol, const char* text, const char* file, int line) {
  if (!(std::abs(a - b) <= tol) && !(a == b) && !(std::isnan(a) && std::isnan(b)))
    fail(file, line, text, ": ", a, " is not within ", tol, " of ", b);
}

template <class F>
void throws(F f, const std::string& part, const char* file, int line) {
  try {
    f();
  } catch (const std::exception& e) {
    if (std::string(e.what()).find(part) == std::string::npos)
      fail(file, line, "message '", e.what(), "' does not name '", part, "'");
    return;
  }
  fail(file, line, "nothing was thrown; expected an error naming '", part, "'");
}

}  // namespace check

#define TEST(name)                                           \
  static void name();                                        \
  static const check::Register register_##name{#name, name}; \
  static void name()
#define CHECK(x) \
  if (!(x)) check::fail(__FILE__, __LINE__, #x)
#define CHECK_EQ(a, b) check::equal(a, b, #a " == " #b, __FILE__, __LINE__)
#define CHECK_NEAR(a, b, tol) check::near(a, b, tol, #a " ~ " #b, __FILE__, __LINE__)
#define CHECK_THROWS(expression, part) \
  check::throws([&] { (void)(expression); }, part, __FILE__, __LINE__)
