#pragma once
#include <string>

namespace popx {

/// The root of the Poplar SDK whose libraries this process has loaded: include/ and lib/ are in it.
std::string sdkFolder();

/// Loads all libraries of that SDK, and makes their symbols visible to libraries loaded afterwards.
void showSdkLibraries();

}  // namespace popx
