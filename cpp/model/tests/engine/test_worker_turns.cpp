// Workers of a vertex that wait for values that others write: they go on, or the program ends with
// an error that names the vertex.
#include <chrono>
#include <sstream>

#include "Check.hpp"
#include "poplar/Program.hpp"
#include "popops/OnDevice.hpp"

using namespace poplar;

namespace {

const char* const kCodelets = R"src(
#include <poplar/Vertex.hpp>
#include <stdexcept>
#include <vector>
using namespace poplar;

/// Waits until a flag has a value.
static void await(volatile unsigned* flag, unsigned value) {
  while (*flag != value) {
  }
}
static void pass() { asm volatile("" ::: "memory"); }

struct Throws : MultiVertex {
  InOut<Vector<unsigned>> x;
  bool compute(unsigned worker) {
    std::vector<unsigned> own(3, worker);
    if (worker == 2) throw std::runtime_error("it is broken");
    await(&x[0], 7);
    x[worker] = own[1];
    return true;
  }
};

struct Deadlock : MultiVertex {
  InOut<Vector<unsigned>> x;
  bool compute(unsigned worker) {
    if (worker % 2 == 0) await(&x[worker + 1], 1);
    return true;
  }
};

/// A circle: each waits for the next to come first.
struct Circle : MultiVertex {
  InOut<Vector<unsigned>> x;
  bool compute(unsigned worker) {
    await(&x[(worker + 1) % numWorkers()], 1);
    x[worker] = 1;
    return true;
  }
};

/// Worker 0 sets a flag and takes it back after a loop, as if the others ran in step with it.
struct Pulse : MultiVertex {
  InOut<Vector<unsigned>> x;
  unsigned turns;
  bool compute(unsigned worker) {
    volatile unsigned* all = &x[0];
    if (worker != 0) {
      await(all, 1);
      all[worker] = worker;
      return true;
    }
    for (unsigned i = 0; i < turns; ++i) pass();
    *all = 1;
    for (unsigned i = 0; i < turns + 8; ++i) pass();
    *all = 0;
    return true;
  }
};

/// Gives up after a number of looks, which the counter tells.
struct Bounded : MultiVertex {
  InOut<Vector<unsigned>> x;
  bool compute(unsigned worker) {
    volatile unsigned* all = &x[0];
    for (unsigned i = 0; i < 1000000 && worker == 5; ++i)
      if (all[0] == 1) all[5] = 9;
    all[worker] = all[worker] + 1;
    return true;
  }
};

/// Its loops come back to the same registers and the same stack, and still end.
struct Tries : MultiVertex {
  InOut<Vector<unsigned>> x;
  bool compute(unsigned worker) {
    while (__builtin_ipu_urand32() % 512 != worker) pass();
    const unsigned begin = __builtin_ipu_get_scount_l();
    while (__builtin_ipu_get_scount_l() - begin < 100000) pass();
    std::vector<unsigned> counts(1);
    volatile unsigned* count = counts.data();
    while (*count < 3000) *count = *count + 1;
    x[worker] = *count;
    return true;
  }
};

/// Through the fields of the vertex, which its workers share.
struct Fields : MultiVertex {
  InOut<Vector<unsigned>> x;
  unsigned arrived = 0;
  bool compute(unsigned worker) {
    *const_cast<volatile unsigned*>(&arrived) += 1;
    pass();
    await(&arrived, numWorkers());
    pass();
    x[worker] = arrived;
    return true;
  }
};

struct Meets : Vertex {
  InOut<Vector<unsigned>> x;
  unsigned met = 6;
  bool compute() {
    const unsigned worker = __builtin_ipu_get_worker_id();
    *const_cast<volatile unsigned*>(&x[0]) += 1;
    pass();
    await(&x[0], met);
    pass();
    x[1 + worker] = worker;
    return true;
  }
};
struct Starts : SupervisorVertex {
  InOut<Vector<unsigned>> x;
  unsigned met;
  __attribute__((target("supervisor"))) bool compute() {
    asm volatile(
        "setzi $m1, __runCodelet_Meets\n"
        "runall $m1, $m0, 0\n"
        "sync 0x1\n" ::: "memory");
    return true;
  }
};
)src";

/// The seven numbers that a vertex leaves in its field x.
std::vector<unsigned> run(const std::string& type, unsigned tile = 1,
                          const std::vector<std::pair<std::string, unsigned>>& values = {}) {
  OnDevice d;
  std::istringstream source(kCodelets);
  d.graph.addCodelets(source);
  const Tensor x = d.input<unsigned>(UNSIGNED_INT, {7}, std::vector<unsigned>(7));
  const ComputeSet cs = d.graph.addComputeSet();
  const VertexRef v = d.graph.addVertex(cs, type, {{"x", x}});
  for (const auto& [name, value] : values) d.graph.setInitialValue(v[name], value);
  d.graph.setTileMapping(v, tile);
  d.prog.add(program::Execute(cs));
  return d.read<unsigned>(x);
}

}  // namespace

TEST(others_do_not_wait_for_a_worker_that_failed) {
  CHECK_THROWS(run("Throws", 3), "a Throws on tile 3, worker 2 said: it is broken");
}

TEST(workers_that_wait_for_ever_end_the_program) {
  CHECK_THROWS(run("Deadlock", 2),
               "a Deadlock on tile 2 said: worker 0, 2, 4 wait for memory that no worker is left");
  CHECK_THROWS(run("Circle"), "worker 0, 1, 2, 3, 4, 5 wait");
}

TEST(a_flag_that_is_set_for_a_while_is_seen) {
  for (const unsigned turns : {0u, 10u, 1000u, 300000u})
    CHECK((run("Pulse", 1, {{"turns", turns}}) == std::vector<unsigned>{0, 1, 2, 3, 4, 5, 0}));
}

TEST(who_does_not_look_for_ever_does_not_wait) {
  CHECK((run("Bounded") == std::vector<unsigned>{1, 1, 1, 1, 1, 10, 0}));
  CHECK((run("Tries") == std::vector<unsigned>{3000, 3000, 3000, 3000, 3000, 3000, 0}));
}

TEST(workers_share_the_fields_of_their_vertex) {
  CHECK((run("Fields") == std::vector<unsigned>{6, 6, 6, 6, 6, 6, 0}));
}

TEST(workers_that_a_supervisor_starts_wait_for_one_another) {
  CHECK((run("Starts", 1, {{"met", 6}}) == std::vector<unsigned>{6, 0, 1, 2, 3, 4, 5}));
  CHECK_THROWS(run("Starts", 1, {{"met", 7}}), "worker 0, 1, 2, 3, 4, 5 wait");
}
