#pragma once
#include <string>

#include "poplar/OptionFlags.hpp"

namespace poplar::internal {

/// Throws invalid_option for an option that no Poplar documents, or for a value of
/// "debug.outOfMemory" other than log and error. Returns whether a program that does not fit is
/// refused.
bool checkEngineOptions(const OptionFlags& options);

/// Engines run one replica; throws poplar_error for another.
void checkReplica(unsigned index);

/// Where the options ask for a report to be left: a file in an existing folder, or nothing.
std::string reportFile(const OptionFlags& options);

}  // namespace poplar::internal
