#pragma once
#include "ipu_registers.h"

// What supervisors' assembly that starts workers becomes: see engine/codelets/WorkerCalls.hpp.
namespace ipujax_workers {

constexpr std::uint32_t kWorkers = 6;

/// `runall`: a function without arguments on each worker, whose vertex is at `vertex`. One worker
/// after another, and the last is done when this returns, so `sync` has nothing to wait for.
inline void runAll(void* entry, void* vertex) {
  auto& w = ipujax_registers::worker();
  const auto id = w.worker;
  void* const own = w.vertex;
  for (w.worker = 0; w.worker < kWorkers; ++w.worker) {
    w.vertex = vertex;
    reinterpret_cast<bool (*)()>(entry)();
  }
  w.worker = id;
  w.vertex = own;
}

/// The function of a codelet as its symbol has it: on the vertex of the worker that runs.
template <class Codelet>
bool compute() {
  static_cast<Codelet*>(ipujax_registers::worker().vertex)->compute();
  return true;
}

}  // namespace ipujax_workers
