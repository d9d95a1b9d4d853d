#pragma once

namespace ipujax::engine {

/// The attribute of a step of vertices that read their tile's clock: RunContext::cycles is set.
constexpr const char* kReadsCycles = "reads_cycles";

}  // namespace ipujax::engine
