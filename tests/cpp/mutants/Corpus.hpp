#pragma once
#include <string>
#include <vector>

namespace mutants {

/// Sealed images of Poplar programs whose kernels no JAX program reaches.
std::vector<std::string> poplarCorpus();

}  // namespace mutants
