#include "poplar/Version.hpp"

namespace poplar {

std::string versionString() { return "ipujax " IPUJAX_VERSION; }
std::string packageHash() { return versionString(); }

}  // namespace poplar
