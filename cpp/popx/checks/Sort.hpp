#pragma once
#include <vector>

#include "popx/Sort.hpp"

/// For the library: the checks of popx::sort.
namespace popx::sorting {

void check(const std::vector<poplar::Tensor>& operands, unsigned dim);
void check(const std::vector<poplar::Tensor>& operands, unsigned dim,
           const std::vector<SortKey>& keys);

}  // namespace popx::sorting
