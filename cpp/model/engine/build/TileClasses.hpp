#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/graph/TileMap.hpp"

namespace ipujax::engine::build {

/// splitmix64: hashes of different values are equal about once in 2^64.
inline std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

/// Tiles of one IPU that hold equally many elements of each variable are one class: at any time,
/// all of them hold the same. Most programs have a few classes for 1,472 tiles.
class TileClasses {
 public:
  struct Count {
    std::uint32_t tiles;  ///< a class
    std::uint32_t elements;
  };

  /// `maps` are of all variables that count. With `apart` each tile is a class of its own.
  TileClasses(const std::vector<const TileMap*>& maps, std::size_t num_tiles, std::size_t num_ipus,
              bool apart);

  std::size_t size() const { return tile_of_.size(); }
  /// The classes of an IPU are [first, second).
  std::pair<std::size_t, std::size_t> ofIpu(std::size_t ipu) const {
    return {first_of_[ipu], first_of_[ipu + 1]};
  }
  std::uint32_t tileOf(std::size_t tiles) const { return tile_of_[tiles]; }  ///< the first
  std::uint32_t classOf(std::size_t tile) const { return class_of_[tile]; }
  /// The elements on one tile of each class that holds any.
  const std::vector<Count>& counts(const TileMap* map) const { return counts_.at(map); }

 private:
  std::vector<std::uint32_t> tile_of_;   ///< by class
  std::vector<std::uint32_t> class_of_;  ///< by tile
  std::vector<std::size_t> first_of_;    ///< by IPU
  std::unordered_map<const TileMap*, std::vector<Count>> counts_;
};

}  // namespace ipujax::engine::build
