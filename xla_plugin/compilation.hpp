#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "pjrt_abi.hpp"
#include "platform_config.hpp"

namespace ipujax::plugin {

/// Compiles a program for devices of a machine into a sealed executable.
/// @param options a serialised xla.CompileOptionsProto; if it names no devices, the program is for
///     `default_devices`.
std::string compileFor(const PlatformConfig& machine, const PJRT_Program& program,
                       std::string_view options, std::span<const std::int32_t> default_devices);

}  // namespace ipujax::plugin
