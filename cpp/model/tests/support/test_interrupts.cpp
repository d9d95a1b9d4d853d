#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "Check.hpp"
#include "support/Interrupts.hpp"

using namespace std::chrono_literals;
namespace interrupts = ipujax::runtime::interrupts;

namespace {

std::atomic<int> handled{0}, reactions{0};

bool until(const auto& condition) {
  for (int i = 0; i < 500 && !condition(); ++i) std::this_thread::sleep_for(10ms);
  return condition();
}

}  // namespace

TEST(programs_hear_of_an_interrupt_after_the_handler_that_was_there) {
  struct sigaction own = {}, before = {};
  own.sa_handler = [](int) { ++handled; };
  sigaction(SIGINT, &own, &before);
  interrupts::watch();
  interrupts::watch();
  interrupts::react([] { return ++reactions % 3 != 0; });
  const auto count = interrupts::count();
  const auto begin = std::chrono::steady_clock::now();
  kill(getpid(), SIGINT);
  CHECK(until([] { return handled == 1; }));
  CHECK(until([&] { return interrupts::count() == count + 1; }));
  CHECK(std::chrono::steady_clock::now() - begin >= interrupts::kGrace);
  CHECK(until([] { return reactions == 3; }));  // again while it asks for that
  kill(getpid(), SIGINT);
  CHECK(until([] { return reactions == 6; }));
  CHECK_EQ(interrupts::count(), count + 2);
  CHECK_EQ(handled.load(), 2);
  interrupts::react(nullptr);
  sigaction(SIGINT, &before, nullptr);
}
