#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mutants {

class Random;

/// Alters bytes or fields of a sealed image and seals it again. The image and parts from others are
/// taken from the sealed images in `corpus`. The same number gives the same mutant.
std::string mutate(const std::vector<std::string>& corpus, std::uint64_t number);
/// The index of the image in the corpus that a mutant is made from.
std::size_t parentOf(const std::vector<std::string>& corpus, std::uint64_t number);

/// Alters a bit, a byte, a number, or the length of `bytes`, of which there must be at least 8.
void alterBytes(Random& random, std::string& bytes);

}  // namespace mutants
