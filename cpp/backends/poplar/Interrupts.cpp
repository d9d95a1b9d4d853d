#include "backends/poplar/Interrupts.hpp"

#include "support/Interrupts.hpp"

/// Only the model's libpoplar.so defines this.
extern "C" __attribute__((weak)) void ipujax_model_note_interrupt();

namespace ipujax::poplar_backend {

void relayInterrupts() {
  if (ipujax_model_note_interrupt != nullptr)
    runtime::interrupts::relay(&ipujax_model_note_interrupt);
}

}  // namespace ipujax::poplar_backend
