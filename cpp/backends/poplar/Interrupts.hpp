#pragma once

namespace ipujax::poplar_backend {

/// Passes Ctrl-C, which this extension receives (see runtime/Interrupts.hpp), on to codelets that
/// the IPU Model runs. Does nothing with the SDK's Poplar, whose codelets run on IPUs.
void relayInterrupts();

}  // namespace ipujax::poplar_backend
