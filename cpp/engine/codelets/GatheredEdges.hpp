#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine {

/// Edges that are not one run of memory, each copied as a run to the tile of its vertex. All of one
/// element type are in one variable, and one step gathers them: the exchange of the compute set.
class GatheredEdges {
 public:
  struct Place {
    std::uint32_t variable = 0;
    std::int64_t begin = 0;
  };

  GatheredEdges(GraphImpl& graph, const DebugContext& debug) : graph_(graph), debug_(debug) {}

  /// Where the vertex finds the elements of `tensor`. What is written is scattered afterwards.
  Place add(const View& tensor, unsigned tile, bool is_written);
  /// Gives the variables their sizes and tiles; after the last `add`.
  void finish();
  std::vector<ProgramNodePtr> gathers() const;
  std::vector<ProgramNodePtr> scatters() const;

 private:
  struct Run {
    std::uint32_t variable;
    std::int64_t from;
    std::int64_t to;  ///< in the gathered variable
    std::int64_t length;
    bool is_written;
  };
  /// What a step moves, besides what the exchange of the vertices' step has.
  struct Moves {
    std::map<unsigned, std::uint64_t> kept_bytes;                ///< by tile, on which they stay
    std::map<std::pair<unsigned, unsigned>, double> link_bytes;  ///< by IPUs: of elements, vertex
  };
  struct Gathered {
    std::uint32_t variable = 0;
    std::uint64_t elements = 0;
    std::vector<TileMap::Region> regions;
    std::vector<Run> runs;
    Moves read, written;
  };

  void count(Gathered& gathered, const Run& run, unsigned tile) const;
  ProgramNodePtr step(const Gathered& gathered, bool scatters) const;
  Cost costOf(const Moves& moves, bool scatters) const;

  GraphImpl& graph_;
  DebugContext debug_;
  std::map<ElementType, Gathered> by_type_;
};

}  // namespace ipujax::engine
