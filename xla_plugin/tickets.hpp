#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "launch.hpp"

namespace ipujax::plugin {

/// Makes the tasks that put one launch in the queues of several devices. It runs once all devices
/// have reached it, on the thread of the last one; the others wait for it.
std::vector<std::unique_ptr<Task>> ticketsFor(std::unique_ptr<Launch> launch, std::size_t count);

/// For tickets that queues did not take: their devices count as arrived, and nobody waits.
void runRefused(std::vector<std::unique_ptr<Task>> refused);

}  // namespace ipujax::plugin
