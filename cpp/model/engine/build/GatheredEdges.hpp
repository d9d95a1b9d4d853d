#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "engine/codelets/VertexStore.hpp"
#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine {

/// Copies each edge that is not contiguous, as one run, to the tile of its vertex. All edges of one
/// element type share a variable, which one step gathers. Data that they receive are counted with
/// the step of the vertices, as for all edges.
class GatheredEdges {
 public:
  struct Place {
    std::uint32_t variable = 0;
    std::int64_t begin = 0;
  };

  GatheredEdges(GraphImpl& graph, const DebugContext& debug) : graph_(graph), debug_(debug) {}

  /// Returns where the vertex finds `tensor`'s elements. Written ones are scattered afterwards.
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
