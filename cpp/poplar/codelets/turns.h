#pragma once
#include <csetjmp>
#include <cstring>

#include "engine/codelets/VertexAbi.hpp"

// What a library of codelets calls at each block of its code where its workers may wait for one
// another: it is compiled with -fsanitize-coverage=trace-pc, and this by itself, without.
extern "C" {
/// Null until the model has set it.
__attribute__((visibility("default"))) const IpujaxTurns* ipujax_turns = nullptr;

void __sanitizer_cov_trace_pc() {  // NOLINT: its name
  if (ipujax_turns == nullptr) return;
  std::jmp_buf registers;
  std::memset(&registers, 0, sizeof(registers));  // setjmp does not fill it
  setjmp(registers);
  ipujax_turns->poll(&registers, sizeof(registers), __builtin_frame_address(0));
}
}
