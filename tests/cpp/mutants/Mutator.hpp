#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mutants {

class Random;

/// A sealed image with something altered and a seal that fits: bytes of its contents, or fields of
/// the image. `others` are sealed images to take parts from. The same number gives the same mutant.
std::string mutate(const std::vector<std::string>& corpus, std::uint64_t number);
/// Which image of the corpus a mutant is made of.
std::size_t parentOf(const std::vector<std::string>& corpus, std::uint64_t number);

/// Alters a bit, a byte, a number, or the length of bytes, of which there are 8 or more.
void alterBytes(Random& random, std::string& bytes);

}  // namespace mutants
