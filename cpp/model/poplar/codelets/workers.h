#pragma once
#include "engine/VertexAbi.hpp"
#include "ipu_registers.h"

extern "C" const IpujaxTurns* ipujax_turns __attribute__((weak, visibility("default")));

// What supervisors' assembly that starts workers becomes: see engine/codelets/WorkerCalls.hpp.
namespace ipujax_workers {

constexpr std::uint32_t kWorkers = 6;

struct Start {
  bool (*entry)();
  void* vertex;
  std::uint32_t tile;
  std::uint64_t seed;
};

/// Of a worker, on any thread.
inline void start(void* context, unsigned worker) {
  const Start& s = *static_cast<const Start*>(context);
  auto& w = ipujax_registers::worker();
  const auto before = w;
  ipujax_registers::enter(s.vertex, s.tile, worker, s.seed);
  s.entry();
  w = before;
}

/// `runall`: a function without arguments on each worker, whose vertex is at `vertex`. The last is
/// done when this returns, so `sync` has nothing to wait for.
inline void runAll(void* entry, void* vertex) {
  Start context{reinterpret_cast<bool (*)()>(entry), vertex, ipujax_registers::worker().tile,
                ipujax_registers::next()};
  if (&ipujax_turns != nullptr && ipujax_turns != nullptr &&
      ipujax_turns->run_all(start, &context) != 0)
    return;
  for (unsigned worker = kWorkers; worker-- > 0;) start(&context, worker);
}

/// The function of a codelet as its symbol has it: on the vertex of the worker that runs.
template <class Codelet>
bool compute() {
  static_cast<Codelet*>(ipujax_registers::worker().vertex)->compute();
  return true;
}

}  // namespace ipujax_workers
