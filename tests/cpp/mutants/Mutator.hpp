#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mutants {

/// A sealed image with something altered and a seal that fits: bytes of its contents, or fields of
/// the image. `others` are sealed images to take parts from. The same number gives the same mutant.
std::string mutate(const std::vector<std::string>& corpus, std::uint64_t number);
/// Which image of the corpus a mutant is made of.
std::size_t parentOf(const std::vector<std::string>& corpus, std::uint64_t number);

}  // namespace mutants
