// Codelets with faults that would end a process: the program ends with an error that names the
// vertex, and may run again.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include "Check.hpp"
#include "engine/codelets/CodeletGuard.hpp"
#include "poplar/Program.hpp"
#include "popops/OnDevice.hpp"
#include "support/Interrupts.hpp"

using namespace poplar;
using ipujax::engine::CodeletFault;
using ipujax::engine::guarded;

namespace {

const char* const kCodelets = R"src(
#include <poplar/Vertex.hpp>
#include <cassert>
#include <cstdlib>
#include <exception>
#include <pthread.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>
using namespace poplar;

#define FAILS(Name, statement)                    \
  struct Name : Vertex {                          \
    InOut<int> x;                                 \
    bool compute() {                              \
      if (*x == 1) { statement; }                 \
      *x += 10;                                   \
      return true;                                \
    }                                             \
  };

static void refuses() noexcept { throw std::runtime_error("nobody may see it"); }
__attribute__((noinline)) static int deep(volatile int* x) {
  volatile int place[100];
  place[*x % 100] = *x;
  return deep(place) + place[3] + *x;
}

FAILS(Divides, volatile int zero = 0; *x = 7 / zero)
FAILS(Remainder, volatile unsigned zero = 0; *x = int(7u % zero))
FAILS(Wide, volatile long long zero = 0; *x = int(7ll / zero))
FAILS(Overflows, volatile int least = -2147483647 - 1; volatile int one = -1; *x = least / one)
FAILS(Aborts, abort())
FAILS(StdAborts, std::abort())
FAILS(Traps, __builtin_trap())
FAILS(Asserts, assert(*x == 2))
FAILS(Exits, exit(3))
FAILS(StdExits, std::exit(3))
FAILS(ExitsAtOnce, _exit(0))
FAILS(ExitsAnyway, std::_Exit(0))
FAILS(ExitsQuickly, std::quick_exit(0))
FAILS(Terminates, std::terminate())
FAILS(Refuses, refuses())
FAILS(Stray, volatile int* nowhere = nullptr; *nowhere = 1)
FAILS(Deep, volatile int first = 1; *x = deep(&first))
FAILS(ThrowsInt, throw 5)
FAILS(Forks, *x = fork())
FAILS(EndsItsThread, pthread_exit(nullptr))
FAILS(StartsThread, std::thread([] { abort(); }).detach())
static void* aborts(void*) { abort(); }
FAILS(StartsThreadOfC, pthread_t thread; pthread_create(&thread, nullptr, aborts, nullptr))

/// The constructor of a variable in a function fails the first times, and its destructor always.
struct Held {
  explicit Held(int x) : value(x) { if (x == 1) abort(); }
  ~Held() { abort(); }
  int value;
};
FAILS(Holds, ; } static const Held held(*x); { *x += held.value - 2)
FAILS(HoldsForThread, ; } static thread_local const Held held(*x); { *x += held.value - 2)
struct Again {
  Again(int x) { value = x == 1 ? Again::made(x) : x; }
  static int made(int x) { static const Again again(x); return again.value; }
  int value;
};
FAILS(HoldsItself, *x = Again::made(*x))

/// Worker 5 constructs, and waits meanwhile for worker 4, which waits for the variable.
struct Written {
  explicit Written(volatile int* at) { while (*at == 1) {} }
};
struct Meets : MultiVertex {
  InOut<Vector<int>> x;
  bool compute(unsigned worker) {
    volatile int* all = &x[0];
    if (worker == 4) all[1] = 2;
    static const Written written(all + 1);
    if (worker == 0) all[0] = all[0] + 10;
    return true;
  }
};

struct Fifth : MultiVertex {
  InOut<Vector<int>> x;
  bool compute(unsigned worker) {
    volatile int zero = 0;
    if (x[0] == 1 && worker == 5) x[5] = 7 / zero;
    return true;
  }
};

/// Takes turns, as its source names what is volatile; worker 0 waits for ever.
struct Awaits : MultiVertex {
  InOut<Vector<int>> x;
  bool compute(unsigned worker) {
    volatile int* all = &x[0];
    if (worker == 3) abort();
    while (all[0] == 1) {
    }
    return true;
  }
};

static int inverse(volatile int x) { return 100 / x; }
struct Constructs : Vertex {
  InOut<int> x;
  int y = inverse(0);
  bool compute() { return y == 0; }
};
struct Estimates : Vertex {
  InOut<int> x;
  int parts = 0;
  bool compute() { return true; }
  uint64_t getCycleEstimate() const { return 100 / parts; }
};
)src";

/// Its workers take no turns.
const char* const kLong = R"src(
#include <poplar/Vertex.hpp>
using namespace poplar;
struct Endless : Vertex {
  InOut<int> x;
  bool compute() {
    volatile int* first = &*x;
    while (*first == 1) {}
    *x += 10;
    return true;
  }
};
)src";

/// A program of one vertex on tile 3, whose six elements are initially 1.
struct OneVertex {
  explicit OneVertex(const std::string& type, const char* codelets = kCodelets,
                     const std::string& flags = "") {
    std::istringstream source(codelets);
    d.graph.addCodelets(source, flags);
    const Tensor x = d.graph.addVariable(INT, {6}, "x");
    d.graph.setTileMapping(x, 3);
    d.graph.createHostWrite("write", x);
    d.graph.createHostRead("read", x);
    const ComputeSet cs = d.graph.addComputeSet();
    const bool all = type == "Fifth" || type == "Awaits" || type == "Meets";
    const VertexRef v = d.graph.addVertex(cs, type, {{"x", all ? x : x[0]}});
    d.graph.setTileMapping(v, 3);
    program::Sequence prog;
    prog.add(program::Execute(cs));
    engine = std::make_unique<Engine>(d.graph, prog);
    engine->load(Device(d.graph.getTarget()));
  }
  int run(int first) {
    std::vector<int> x(6, first);
    engine->writeTensor("write", x.data(), x.data() + x.size());
    engine->run(0);
    engine->readTensor("read", x.data(), x.data() + x.size());
    return x[0];
  }
  OnDevice d;
  std::unique_ptr<Engine> engine;
};

void ends(const std::string& type, const std::string& words, const std::string& flags = "") {
  OneVertex program(type, kCodelets, flags);
  for (int i = 0; i < 2; ++i) {
    try {
      program.run(1);
      check::fail(__FILE__, __LINE__, type, " did not fail");
    } catch (const application_runtime_error& e) {
      const std::string got = e.what();
      if (got.find("a " + type + " on tile 3") == std::string::npos ||
          got.find(words) == std::string::npos)
        check::fail(__FILE__, __LINE__, type, " gave: ", got);
    }
  }
  if (type != "Fifth" && type != "Awaits") CHECK_EQ(program.run(2), 12);
}

int statusOf(void (*ending)()) {
  const pid_t process = fork();
  if (process == 0) {
    ending();
    _exit(0);
  }
  int status = 0;
  waitpid(process, &status, 0);
  return status;
}

}  // namespace

TEST(integer_divisions_without_a_result_are_errors) {
  for (const char* type : {"Divides", "Remainder", "Wide", "Overflows"})
    ends(type, "divides an integer by zero");
}

TEST(divisions_by_zero_are_errors_by_the_check_for_processors_without_traps) {
  for (const char* type : {"Divides", "Remainder", "Wide"})
    ends(type, "divides an integer by zero. Correct", "-fsanitize=integer-divide-by-zero");
}

TEST(codelets_end_alone) {
  ends("Aborts", "calls abort()");
  ends("StdAborts", "calls abort()");
  ends("Traps", "runs into a trap");
  ends("Asserts", "assert(*x == 2)");
  ends("Exits", "calls exit()");
  ends("StdExits", "calls exit()");
  ends("ExitsAtOnce", "calls _exit()");
  ends("ExitsAnyway", "calls _Exit()");
  ends("ExitsQuickly", "calls quick_exit()");
  ends("Terminates", "calls abort()");
  ends("Refuses", "calls abort()");
  ends("ThrowsInt", "threw what is no std::exception");
}

TEST(codelets_that_leave_memory_or_the_stack_are_errors) {
  ends("Stray", "memory that is not there");
  ends("Deep", "needs more stack");
}

TEST(a_worker_that_ends_is_named) {
  ends("Fifth", "worker 5 divides an integer by zero");
  ends("Awaits", "worker 3 calls abort()");
}

TEST(a_codelet_that_does_not_end_is_left_after_an_interrupt) {
  OneVertex program("Endless", kLong);
  struct sigaction own = {}, before = {};
  own.sa_handler = [](int) {};
  sigaction(SIGINT, &own, &before);
  ipujax::runtime::interrupts::watch();
  for (int i = 0; i < 2; ++i) {
    std::thread user([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      kill(getpid(), SIGINT);
    });
    CHECK_THROWS(program.run(1), "a Endless on tile 3 runs on after Ctrl-C");
    user.join();
    CHECK_EQ(program.run(2), 12);
  }
  sigaction(SIGINT, &before, nullptr);
}

TEST(constructors_and_estimates_of_codelets_are_guarded) {
  CHECK_THROWS(OneVertex("Constructs"), "divides an integer by zero");
  CHECK_THROWS(OneVertex("Estimates"),
               "getCycleEstimate() of Estimates to give cycles; it divides");
}

TEST(threads_and_processes_of_codelets_are_errors) {
  ends("Forks", "calls fork()");
  ends("EndsItsThread", "calls pthread_exit()");
  ends("StartsThread", "starts a thread");
  ends("StartsThreadOfC", "starts a thread");
}

TEST(static_variables_in_functions_are_constructed_anew_after_a_fault) {
  ends("Holds", "calls abort()");
  ends("HoldsForThread", "calls abort()");
  ends("HoldsItself", "needs a static variable to construct it");
  CHECK_EQ(OneVertex("Meets").run(1), 11);
}

TEST(constructors_of_static_variables_are_guarded) {
  const auto source = [](const std::string& constructor) {
    return "#include <poplar/Vertex.hpp>\n#include <cstdlib>\n#include <stdexcept>\n"
           "static int begun = 0;\n"
           "struct Held { Held() { volatile int zero = 0, *no = nullptr; (void)zero; (void)no;"
           "  begun = 100; " +
           constructor +
           "; } ~Held() { abort(); } };\n"
           "static const Held held;\n"
           "struct Adds : poplar::Vertex { poplar::InOut<int> x;"
           "  bool compute() { *x += begun; return true; } };";
  };
  const auto fails = [&](const std::string& constructor, const std::string& words) {
    const std::string text = source(constructor);
    for (int i = 0; i < 2; ++i) {
      try {
        const OneVertex made("Adds", text.c_str());
        check::fail(__FILE__, __LINE__, constructor, " did not fail");
      } catch (const application_runtime_error& e) {
        const std::string got = e.what();
        if (got.find("one in the source of Adds " + words) == std::string::npos)
          check::fail(__FILE__, __LINE__, constructor, " gave: ", got);
      }
    }
  };
  fails("abort()", "calls abort()");
  fails("exit(0)", "calls exit()");
  fails("throw std::runtime_error(\"mine\")", "said: mine");
  fails("throw 5", "threw what is no std::exception");
  fails("begun /= zero", "divides an integer by zero");
  fails("*no = 1", "reads or writes memory");
  CHECK_EQ(OneVertex("Adds", source("").c_str()).run(1), 101);  // its destructor is never called
}

TEST(guards_nest_and_let_exceptions_through) {
  int reached = 0;
  guarded([&] {
    CHECK_THROWS(guarded([] { throw std::out_of_range("mine"); }), "mine");
    CHECK_THROWS(guarded([] { ipujax::engine::leaveGuarded("leaves"); }), "leaves");
    CHECK_THROWS(guarded([] { raise(SIGFPE); }), "divides");
    ++reached;
  });
  CHECK_EQ(reached, 1);
}

// Outside of codelets, signals keep their previous meaning.
TEST(signals_from_elsewhere_end_the_process) {
  guarded([] {});
  for (void (*ending)() :
       {+[] { raise(SIGFPE); }, +[] { guarded([] { kill(getpid(), SIGFPE); }); }}) {
    const int status = statusOf(ending);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGFPE);
  }
}
