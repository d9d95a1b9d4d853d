#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "named_values.hpp"
#include "support/HostCallbacks.hpp"

namespace pybind11 {
class module_;
}

namespace ipujax::plugin {

/// The plugin's half of the Python extension: adds set_compile_callback, set_host_callback,
/// set_stablehlo_version, show_program_text, guard_transfers, keep_client, retire_clients,
/// say_goodbye, can_connect_processes, device_stats and memory_stats to the module.
void bindPlugin(pybind11::module_& module);

/// The only way from the plugin to Python. Each call takes the GIL itself and may be made from any
/// thread that holds no lock of the plugin.
namespace bridge {

/// Runs the compiler: portable artifact and CompileOptionsProto in, sealed executable out.
std::string compile(std::string_view code, std::string_view options, const Options& platform);

/// Calls the user's Python functions from inside a running program.
runtime::HostCallbacks& hostCallbacks();

/// Whether jaxlib gets the text of programs. It asks for that of every program it compiles, only to
/// learn layouts that it would assume anyway, and parsing takes longer than our compilation.
bool showsProgramText();

/// Runs `function`, which waits for a thread that may need the GIL, with the GIL released if this
/// thread holds it.
void withoutGil(const std::function<void()>& function);

/// The version of StableHLO that Python's dialect reads; empty until it is set.
std::vector<std::int64_t> stablehloVersion();

}  // namespace bridge
}  // namespace ipujax::plugin
