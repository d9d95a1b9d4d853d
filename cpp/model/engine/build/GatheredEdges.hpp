#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "engine/codelets/VertexStore.hpp"
#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine {

/// Edges that are not one run of memory, each copied as a run to the tile of its vertex. All of one
/// element type are in one variable, and one step gathers them. What they receive is counted with
/// the step of the vertices, as that of all edges is.
class GatheredEdges {
 public:
  struct Place {
    std::uint32_t variable = 0;
    std::int64_t begin = 0;
  };

  GatheredEdges(GraphImpl& graph, const DebugContext& debug) : graph_(graph), debug_(debug) {}

  /// Where the vertex finds the elements of `tensor`. What is written is scattered afterwards.
  Place add(const View& tensor, unsigned tile, const IpujaxField& field);
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
  /// Bytes that a tile copies within its own memory.
  using Kept = std::map<unsigned, std::uint64_t>;
  struct Gathered {
    std::uint32_t variable = 0;
    std::uint64_t elements = 0;
    std::vector<TileMap::Region> regions;
    std::vector<Run> runs;
    Kept read, written;
  };

  std::uint64_t keptBytes(const Run& run, unsigned tile) const;
  ProgramNodePtr step(const Gathered& gathered, bool scatters) const;
  Cost costOf(const Kept& kept) const;

  GraphImpl& graph_;
  DebugContext debug_;
  std::map<ElementType, Gathered> by_type_;
};

}  // namespace ipujax::engine
