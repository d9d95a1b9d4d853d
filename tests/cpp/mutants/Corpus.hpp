#pragma once
#include <string>
#include <vector>

namespace mutants {

/// Sealed images of programs against the Poplar API, whose kernels no JAX program reaches.
std::vector<std::string> poplarCorpus();

}  // namespace mutants
