#pragma once
#include <string>

namespace poplar {

/// The version of this library: "ipujax 0.1.0".
std::string versionString();
/// The same, for programs that compare builds.
std::string packageHash();

}  // namespace poplar
