#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "launch.hpp"

namespace ipujax::plugin {

/// The tasks that bring one launch to the queues of several devices. It runs once all devices have
/// come to it, on the thread of the last one; the others wait for it.
std::vector<std::unique_ptr<Task>> ticketsFor(std::unique_ptr<Launch> launch, std::size_t count);

/// For a ticket that a queue did not take: its device counts as there, and nobody waits.
void runRefused(std::vector<std::unique_ptr<Task>> refused);

}  // namespace ipujax::plugin
