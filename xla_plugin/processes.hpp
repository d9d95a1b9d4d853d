#pragma once
#include <memory>

#include "hosts/Channel.hpp"
#include "platform_config.hpp"

namespace ipujax::plugin::processes {

/// Meets the other processes of the job: tells them this one's machine, takes theirs into `config`,
/// and connects all of them. Null if there are no others, or this build cannot connect them. Throws
/// if the processes do not fit together.
std::shared_ptr<hosts::Channel> meet(const PJRT_Client_Create_Args& args, PlatformConfig& config);

/// Says why a program cannot run over several processes.
[[noreturn]] void failWithoutChannel();

/// Waits for the programs over several processes that were called, then tells the other processes
/// that this one ends.
void sayGoodbye();

}  // namespace ipujax::plugin::processes
