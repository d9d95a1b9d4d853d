#pragma once
#include "engine/VertexAbi.hpp"
#include "ipu_registers.h"

extern "C" const IpujaxTurns* ipujax_turns __attribute__((weak, visibility("default")));

// Replaces supervisor assembly that starts workers: see engine/codelets/WorkerCalls.hpp.
namespace ipujax_workers {

constexpr std::uint32_t kWorkers = 6;

struct Start {
  bool (*entry)();
  void* vertex;
  std::uint32_t tile;
  std::uint64_t seed;
};

/// Runs one worker, on any thread.
inline void start(void* context, unsigned worker) {
  const Start& s = *static_cast<const Start*>(context);
  auto& w = ipujax_registers::worker();
  const auto before = w;
  ipujax_registers::enter(s.vertex, s.tile, worker, s.seed);
  s.entry();
  w = before;
}

/// `runall`: runs a function without arguments on each worker, with the vertex at `vertex`. Returns
/// after the last worker, so `sync` has nothing to wait for.
inline void runAll(void* entry, void* vertex) {
  Start context{reinterpret_cast<bool (*)()>(entry), vertex, ipujax_registers::worker().tile,
                ipujax_registers::next()};
  if (&ipujax_turns != nullptr && ipujax_turns != nullptr &&
      ipujax_turns->run_all(start, &context) != 0)
    return;
  for (unsigned worker = kWorkers; worker-- > 0;) start(&context, worker);
}

/// A codelet's compute() as a function without arguments, on the current worker's vertex.
template <class Codelet>
bool compute() {
  static_cast<Codelet*>(ipujax_registers::worker().vertex)->compute();
  return true;
}

}  // namespace ipujax_workers
