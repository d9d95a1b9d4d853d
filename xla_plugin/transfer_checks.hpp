#pragma once

namespace ipujax::plugin::transfer_checks {

/// Whether checksums verify transfers between host and device: arrays that the host puts on a
/// device when a program first takes them, and results when the host gets them. Off by default.
void set(bool on);
bool isOn();

}  // namespace ipujax::plugin::transfer_checks
