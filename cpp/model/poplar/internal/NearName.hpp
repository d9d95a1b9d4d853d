#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace poplar::internal {

/// The known name nearest to a misspelt one: they differ by at most two letters, or a sixth of the
/// known name's length. A swap of neighbours counts once, and case is ignored. Empty if no name is
/// near.
std::string_view nearestName(std::string_view name, const std::vector<std::string_view>& known);

/// "Did you mean 'x'? " for that name, or nothing.
template <class Names>
std::string didYouMean(std::string_view name, const Names& known) {
  const std::string_view found = nearestName(name, {std::begin(known), std::end(known)});
  return found.empty() ? "" : "Did you mean '" + std::string(found) + "'? ";
}

}  // namespace poplar::internal
