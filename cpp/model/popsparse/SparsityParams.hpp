#pragma once
#include <array>
#include <cstddef>
#include <ostream>
#include <tuple>

namespace popsparse {
namespace dynamic {

/// Whether single elements or whole blocks of them are stored.
enum class SparsityType { Element, Block };
/// Where they may lie: anywhere.
enum class SparsityStructure { Unstructured };

std::ostream& operator<<(std::ostream& os, const SparsityType& t);
std::ostream& operator<<(std::ostream& os, const SparsityStructure& s);

struct SparsityParams {
  SparsityType type;
  SparsityStructure structure;
  std::array<std::size_t, 2> blockDimensions;  ///< rows and columns of a block

  SparsityParams(SparsityType type = SparsityType::Element,  // NOLINT: implicit as in the SDK
                 SparsityStructure structure = SparsityStructure::Unstructured,
                 std::array<std::size_t, 2> blockDimensions = {1, 1})
      : type(type), structure(structure), blockDimensions(blockDimensions) {}

  friend bool operator<(const SparsityParams& a, const SparsityParams& b) {
    return a.key() < b.key();
  }
  friend bool operator==(const SparsityParams& a, const SparsityParams& b) {
    return a.key() == b.key();
  }
  friend bool operator!=(const SparsityParams& a, const SparsityParams& b) { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& os, const SparsityParams& p);

 private:
  std::tuple<SparsityType, SparsityStructure, std::array<std::size_t, 2>> key() const {
    return {type, structure, blockDimensions};
  }
};

}  // namespace dynamic
}  // namespace popsparse
