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

/// The load of one tile's vertices.
struct TileLoad {
  std::vector<double> workers;
  double supervisor = 0;
  double received = 0;  ///< bytes from tiles of its IPU, and sent back to them
  std::uint64_t state = 0;
  unsigned next_worker = 0;
};

/// The cost of a step that runs vertices of one file. Lives for the lowering of one step.
class VertexCosts {
 public:
  explicit VertexCosts(GraphImpl& graph) : graph_(graph) {}

  TileLoad& loadOf(unsigned tile);
  /// Adds bytes on tile `on` that a vertex on another tile reads, or that it writes.
  void addRead(unsigned tile, unsigned on, double bytes);
  void addWritten(unsigned tile, unsigned on, double bytes);
  /// Adds a vertex on a tile, with its estimate, that of its type, or the codelet's own; otherwise
  /// its slots are counted if it uses intrinsics. Without any, it takes 30 worker cycles plus, for
  /// each element of the largest edge, the estimate from the codelet's loop, or 10 without a loop
  /// (an assumption; setPerfEstimate replaces it).
  void add(const VertexRecord& vertex, const IpujaxCodelet& codelet, std::uint64_t largest_edge);
  /// The total, after counting vertices that need it in their unit, which has `types` types.
  Cost total(const std::string& unit, std::size_t types);
  /// Whether intrinsics of a vertex went beyond its tensors when it was counted. With other data
  /// they may not, so runs have to check.
  bool leavesMemory() const;

 private:
  struct Entry {
    const VertexRecord* vertex;
    bool is_multi;
    double cycles;          ///< of a worker; of all if a MultiVertex has an estimate
    bool is_known;          ///< whether `cycles` is known
    std::string signature;  ///< of vertices that are run once to count; otherwise empty
    double entry_slots;     ///< of a counted one, for its fields and its end
    double assumed;         ///< cycles if nothing can be counted
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
