#include <cstdio>
#include <cstring>
#include <exception>

#include "Check.hpp"

std::vector<check::Test>& check::tests() {
  static std::vector<Test> all;
  return all;
}

/// Runs all tests, or those whose name contains the argument; one line each, 1 on any failure.
int main(int argc, char** argv) {
  int failed = 0;
  int run = 0;
  for (const auto& test : check::tests()) {
    if (argc > 1 && !std::strstr(test.name, argv[1])) continue;
    ++run;
    try {
      test.run();
      std::printf("ok %s\n", test.name);
    } catch (const std::exception& e) {
      std::printf("FAILED %s: %s\n", test.name, e.what());
      ++failed;
    }
  }
  std::printf("%d passed, %d failed\n", run - failed, failed);
  return failed != 0 || run == 0;
}
