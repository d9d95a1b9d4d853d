#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace poplar::internal {

/// The known name that a misspelt one is like: they differ by at most two letters, or a sixth of
/// the known one's; neighbours that changed places count once, upper and lower case are the same.
/// The result is empty if no name is near.
std::string_view nearestName(std::string_view name, const std::vector<std::string_view>& known);

/// "Did you mean 'x'? " for that name, or nothing.
template <class Names>
std::string didYouMean(std::string_view name, const Names& known) {
  const std::string_view found = nearestName(name, {std::begin(known), std::end(known)});
  return found.empty() ? "" : "Did you mean '" + std::string(found) + "'? ";
}

}  // namespace poplar::internal
