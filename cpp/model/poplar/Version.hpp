#pragma once
#include <string>

namespace poplar {

/// The version of this library: "ipujax 0.1.0".
std::string versionString();
/// The same for a program that compares builds.
std::string packageHash();

}  // namespace poplar
