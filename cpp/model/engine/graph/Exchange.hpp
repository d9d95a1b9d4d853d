#pragma once
#include <cstdint>
#include <vector>

#include "engine/graph/CountedExchanges.hpp"
#include "engine/graph/GraphImpl.hpp"

/// Data that must move over the on-chip exchange before a compute set or a copy.
namespace ipujax::engine {

struct Exchange {
  double bytes = 0;               ///< received, summed over tiles
  double worst_tile_bytes = 0;    ///< most that one tile receives
  double worst_sent_bytes = 0;    ///< most that one tile sends; any number of tiles may listen
  double worst_kept_bytes = 0;    ///< most that is on its tile already
  double worst_landed_bytes = 0;  ///< most that one tile has in the end
};

/// Counts the elements of operands that are not on the tile of the elements they are for. A tile
/// receives an element once, even if a broadcast repeats it. Exact up to 4,096 runs of consecutive
/// elements; beyond that it is estimated from some tiles. It lives for one function's plan.
class ExchangeCount {
 public:
  explicit ExchangeCount(const GraphScope& graph) : graph_(graph.impl) {}

  /// Element i of `from`, in row-major order, goes to the tile of element i of `to`.
  void add(const ViewPtr& from, const ViewPtr& to);
  Exchange result() const;

 private:
  struct Part;
  class Operand;

  GraphImpl& graph_;
  MovedBytes moved_;
};

/// Moves `from`'s elements to the tiles of `to`'s elements (same number of elements).
Exchange exchangeBetween(const GraphScope& graph, const ViewPtr& from, const ViewPtr& to);

}  // namespace ipujax::engine
