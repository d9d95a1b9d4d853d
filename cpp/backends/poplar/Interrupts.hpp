#pragma once

namespace ipujax::poplar_backend {

/// Ctrl-C that this extension is told of, see runtime/Interrupts.hpp, reaches codelets that the IPU
/// Model runs. Does nothing where Poplar is the SDK's, whose codelets are on IPUs.
void relayInterrupts();

}  // namespace ipujax::poplar_backend
