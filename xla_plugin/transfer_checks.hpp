#pragma once

namespace ipujax::plugin::transfer_checks {

/// Whether arrays on their way between host and device are compared by checksums: what the host
/// puts on a device when a program first takes it, and results when the host gets them. Off at
/// first.
void set(bool on);
bool isOn();

}  // namespace ipujax::plugin::transfer_checks
