#pragma once
#include <csetjmp>
#include <cstdint>
#include <cstring>

#include "engine/VertexAbi.hpp"

// Called by a codelet library at each basic block if its workers may wait for one another: the
// library is compiled with -fsanitize-coverage=trace-pc, and this file separately, without.
extern "C" {
/// Null until the model sets it.
__attribute__((visibility("default"))) const IpujaxTurns* ipujax_turns = nullptr;

static thread_local std::uint64_t ipujax_unseen = 0;

/// Blocks to pass before the model checks this thread again.
__attribute__((visibility("default"))) std::uint64_t* ipujax_unseen_here() {
  return &ipujax_unseen;
}

void __sanitizer_cov_trace_pc() {  // NOLINT: its name
  if (ipujax_unseen > 0) {
    --ipujax_unseen;
    return;
  }
  if (ipujax_turns == nullptr) return;
  std::jmp_buf registers;
  std::memset(&registers, 0, sizeof(registers));  // setjmp does not fill it
  setjmp(registers);
  ipujax_unseen =
      ipujax_turns->poll(&registers, sizeof(registers), __builtin_frame_address(0));
}
}
