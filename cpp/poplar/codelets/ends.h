#pragma once

// What functions that end a process are linked to in a library of codelets (the linker's --wrap):
// they end the codelet, as an error of the program; and what divisions by zero call. Once in each
// library.
extern "C" {
/// Set by the model before anything runs. `why` follows the name of the codelet.
__attribute__((visibility("default"))) void (*ipujax_leave)(const char* why) = nullptr;

#define IPUJAX_END(name, parameters)                                         \
  [[noreturn]] void __wrap_##name parameters {  /* NOLINT: the linker's */   \
    ipujax_leave("calls " #name "()");                                       \
    __builtin_trap();                                                        \
  }
IPUJAX_END(abort, ())
IPUJAX_END(exit, (int))
IPUJAX_END(_exit, (int))
IPUJAX_END(_Exit, (int))
IPUJAX_END(quick_exit, (int))
#undef IPUJAX_END

/// What compilers call where -fsanitize=integer-divide-by-zero finds one, which needs no other
/// library then: for processors that go on with a quotient of 0.
__attribute__((visibility("hidden"))) void __ubsan_handle_divrem_overflow(void*, void*, void*) {
  ipujax_leave("divides an integer by zero");
}
}
