#include "engine/Mechanisms.hpp"

#include <algorithm>
#include <stdexcept>

namespace ipujax::engine {
namespace {

std::string allNames() {
  std::string all;
  for (const auto name : kMechanismNames) all += (all.empty() ? "" : ", ") + std::string(name);
  return all;
}

}  // namespace

Mechanisms Mechanisms::without(std::string_view names) {
  Mechanisms result;
  while (!names.empty()) {
    const auto name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const auto found = std::ranges::find(kMechanismNames, name);
    if (found == kMechanismNames.end())
      throw std::invalid_argument("[engine] needs mechanisms from " + allNames() + "; got '" +
                                  std::string(name) + "'. Use these names, comma-separated.");
    result.off_ |= 1u << (found - kMechanismNames.begin());
  }
  return result;
}

Mechanisms Mechanisms::fromBits(std::uint32_t bits) {
  if (bits >> kMechanismNames.size() != 0)
    throw std::invalid_argument("[engine] needs bits of mechanisms; got " + std::to_string(bits) +
                                ". Compile the program again.");
  Mechanisms result;
  result.off_ = bits;
  return result;
}

}  // namespace ipujax::engine
