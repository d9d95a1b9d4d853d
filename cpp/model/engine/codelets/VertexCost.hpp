#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/Cost.hpp"
#include "engine/codelets/VertexStore.hpp"
#include "engine/graph/LinkTransfer.hpp"

namespace ipujax::engine {

class GraphImpl;

/// What the vertices of one tile take.
struct TileLoad {
  std::vector<double> workers;
  double supervisor = 0;
  double received = 0;  ///< and sent back to tiles of its IPU
  std::uint64_t state = 0;
  unsigned next_worker = 0;
};

/// The cost of a step that runs vertices of one file. Lives for the lowering of one.
class VertexCosts {
 public:
  explicit VertexCosts(GraphImpl& graph) : graph_(graph) {}

  TileLoad& loadOf(unsigned tile);
  /// Bytes on tile `on` that a vertex on another tile reads, or that it writes.
  void addRead(unsigned tile, unsigned on, double bytes);
  void addWritten(unsigned tile, unsigned on, double bytes);
  /// A vertex on a tile, with its estimate, that of its type, or the codelet's own; otherwise what
  /// is counted where it uses intrinsics. Without any, 30 worker cycles and for each element of the
  /// largest edge what the codelet's loop lets expect; 10 where it has no loop of its own (an
  /// assumption; setPerfEstimate replaces it).
  void add(const VertexRecord& vertex, const IpujaxCodelet& codelet, std::uint64_t largest_edge);
  /// Counts what is to be counted in the unit of the vertices, of which there are `types`.
  Cost total(const std::string& unit, std::size_t types);
  /// Whether intrinsics of a vertex went beyond its tensors when it was counted. With other data
  /// they may not: runs have to look.
  bool leavesMemory() const;

 private:
  struct Entry {
    const VertexRecord* vertex;
    bool is_multi;
    double cycles;          ///< of a worker; of a MultiVertex as given, of all
    bool is_known;          ///< cycles are
    std::string signature;  ///< of those that are run once; otherwise empty
    double entry_slots;     ///< of a counted one, for its fields and its end
    double assumed;         ///< where nothing can be counted
  };

  double assumedOf(const VertexRecord& vertex, std::uint64_t largest_edge) const;
  void addMoved(LinkBytes& links, unsigned from, unsigned to, TileLoad& load, double bytes);
  void countThem(const std::string& unit);
  double cyclesOf(const Entry& entry) const;

  GraphImpl& graph_;
  std::vector<Entry> entries_;
  std::map<unsigned, TileLoad> tiles_;
  LinkBytes read_, written_;  ///< before the vertices compute, and after it
  double flops_ = 0;
};

}  // namespace ipujax::engine
