#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "engine/Machine.hpp"
#include "engine/graph/TileMap.hpp"
#include "engine/graph/View.hpp"

namespace ipujax::engine {

struct Variable;

/// Bytes that move to the tiles that need them, by tile.
struct MovedBytes {
  double total = 0;
  std::vector<double> received, sent, kept;
};

/// Cache of counted exchanges. Equal parts of a program have the same layout but begin at different
/// tiles: a pair of views is known if all its tiles are as far from each other as those of a
/// counted pair, modulo the tiles of an IPU.
class CountedExchanges {
 public:
  explicit CountedExchanges(const System& system);

  /// Adds to `sum` the bytes that move from one view to the tiles of the other; calls `count` for a
  /// new pair.
  void add(MovedBytes& sum, const std::vector<Variable>& variables, const View& from,
           const View& to, const std::function<MovedBytes()>& count);

 private:
  /// Distance of tiles from those of another pair: IPUs, and tiles within an IPU.
  struct Turn {
    std::uint32_t ipus = 0, tiles = 0;
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };
  /// A mapping shifted to begin at tile 0 of IPU 0, by its number, and where it really begins.
  struct Turned {
    TileMapPtr map;  ///< kept, so that no other mapping gets its address
    std::uint64_t shape;
    Turn begin;
  };
  struct Counted {
    MovedBytes bytes;
    Turn begin;
  };
  using Key = std::vector<std::uint64_t>;
  /// What identifies a pair of views: their shapes and strides, which of their variables are the
  /// same, and where these are relative to `begin`.
  struct Pair {
    const std::vector<Variable>& variables;
    Turn begin;
    std::vector<std::uint32_t> seen{};
    Key key{};
  };

  Turn between(Turn from, Turn to) const;
  std::uint32_t turn(std::uint32_t tile, Turn by) const;
  const Turned& turned(const TileMapPtr& map);
  void append(Pair& pair, const View& view);

  std::uint32_t num_ipus_, tiles_per_ipu_;
  std::unordered_map<const TileMap*, Turned> maps_;
  std::map<std::vector<std::uint64_t>, std::uint64_t> shapes_;  ///< number, by regions
  std::map<Key, Counted> counted_;
  std::size_t kept_ = 0;  ///< numbers in counted_
};

}  // namespace ipujax::engine
