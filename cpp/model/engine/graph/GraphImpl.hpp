#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/FloatBehaviour.hpp"
#include "engine/Machine.hpp"
#include "engine/graph/CountedExchanges.hpp"
#include "engine/graph/DebugContext.hpp"
#include "engine/graph/ProgramNode.hpp"
#include "engine/graph/TileMap.hpp"
#include "engine/graph/View.hpp"

namespace ipujax::engine {

struct VertexStore;  ///< codelets, compute sets and vertices

/// Use of a variable, if its creator tells. The account of memory counts each use separately, and
/// merged variables as the greatest of their uses.
enum class VariableUse : std::uint8_t { kTemporary, kAccumulator, kStash };

/// Replicas within a replica: all that a graph of Graph::createReplicatedGraph adds exists `count`
/// times. A variable stands for those of all parts and is mapped as the first one: on the `tiles`
/// tiles from `first_tile` on. Programs are flattened for the parts.
struct Parts {
  unsigned count = 1;
  unsigned first_tile = 0;
  unsigned tiles = 0;
};

struct Variable {
  ElementType type = ElementType::kFloat;
  std::uint64_t elements = 0;
  DebugContext debug;
  TileMapPtr map;
  VariableUse use = VariableUse::kTemporary;
  bool is_constant = false;
  bool is_remote = false;           ///< in the host's memory, on no tile
  std::vector<std::byte> values{};  ///< of a constant, or initial values; empty otherwise
  Parts parts{};
};

/// A channel between the host and the device.
struct Stream {
  std::uint32_t id = 0;  ///< its place in the graph's list
  std::string handle;
  ElementType type = ElementType::kFloat;
  std::uint64_t elements = 0;
  bool to_device = true;
  bool is_in_runs = true;  ///< false: used by the host between runs, which no account includes
  bool broadcasts = false;
  unsigned parts = 1;  ///< see StreamSpec
};

/// State shared by a poplar::Graph and its virtual graphs. Tensors point here but do not own it,
/// so a Tensor must not be used after its Graph is gone (as in the SDK). Not thread-safe.
class GraphImpl : public std::enable_shared_from_this<GraphImpl> {
 public:
  explicit GraphImpl(System system);
  ~GraphImpl();

  std::uint32_t addVariable(ElementType type, std::uint64_t elements, TileMapPtr map,
                            const DebugContext& debug);
  /// A new variable of `shape` spread linearly over all tiles.
  ViewPtr addLinear(ElementType type, std::vector<std::size_t> shape, const DebugContext& debug);
  /// A new variable for a copy of elements of `view`: in the host's memory if `view` is, or on the
  /// IPU of `view` if it is on only one.
  ViewPtr addTemporary(const View& view, std::vector<std::size_t> shape, const DebugContext& debug);
  /// A new variable in the host's memory.
  ViewPtr addRemote(ElementType type, std::vector<std::size_t> shape, const DebugContext& debug);
  /// Whether the view is of a variable in the host's memory.
  bool isRemote(const View& view) const;
  /// The IPU that holds all elements of the variables of a view, if there is only one.
  std::optional<unsigned> ipuOf(const View& view) const;
  /// The linear mapping over `tiles`, which must not change while the graph lives, from the first
  /// tile of the layout group on.
  TileMapPtr linearMap(std::uint64_t elements, const std::vector<unsigned>& tiles,
                       const LinearDivision& division);
  /// The same, with at least 128 bytes per tile, in grains of a vector.
  TileMapPtr linearMap(ElementType type, std::uint64_t elements,
                       const std::vector<unsigned>& tiles);
  /// The variable that the view is all of, in order; null for any other view.
  Variable* variableOfAll(const View& view);
  /// Number of parts of a view: that of its first variable with parts.
  unsigned partsOf(const View& view) const;
  /// The same elements in another part; variables without parts stay.
  ViewPtr partOf(const ViewPtr& view, unsigned part);
  /// [parts, ...]: the elements of all parts, one after another.
  ViewPtr allParts(const ViewPtr& view);
  /// Updates the variables of the parts from the one that stands for them: mapping, and values of
  /// constants.
  void finishParts();
  void makeParts();  ///< makes those of all variables, and finishes them

  System system;
  std::vector<unsigned> all_tiles;
  std::vector<Variable> variables;
  std::vector<Stream> streams;
  std::vector<std::shared_ptr<ProgramNode>> functions;
  std::map<std::string, ViewPtr> host_writes;
  std::map<std::string, ViewPtr> host_reads;
  std::shared_ptr<VertexStore> vertices;
  std::map<std::string, ViewPtr> hidden;  ///< libraries' own state, e.g. poprand's seeds
  HalfBehaviour half;                     ///< of steps added from now on
  FloatTraps traps;                       ///< the same: what ends a program
  /// For stochastic rounding in steps added from now on: the key, and its next stream of random
  /// bits. Without a key each step draws its own from poprand's generator.
  ViewPtr rounding_key;
  std::int64_t rounding_stream = 1;
  unsigned replication_factor = 1;
  std::uint32_t layout_group = 0;  ///< of variables made from now on; see startOf
  /// Written by every program before all else: addReplicationIndexConstant.
  std::vector<ViewPtr> replication_indices;
  std::map<std::string, ViewPtr> remote_buffers;  ///< [repeats, elements], by handle
  Parts parts;                                    ///< of variables made from now on
  CountedExchanges counted_exchanges;

 private:
  ViewPtr addLinear(ElementType type, std::vector<std::size_t> shape,
                    const std::vector<unsigned>& tiles, const DebugContext& debug);

  /// Where on `tiles` the layout group's mappings begin, if they do not need all tiles. The first
  /// one of a group goes to the tiles after those that the previous group began with.
  std::size_t startOf(const std::vector<unsigned>& tiles, std::uint64_t used);

  struct MadeParts {
    std::vector<std::uint32_t> variables;
    TileMapPtr last_map;  ///< that the parts' mappings were last made from
  };
  const MadeParts& partsOfVariable(std::uint32_t variable);
  const Variable& firstWithParts(const View& view) const;
  View partOf(const View& view, unsigned part);

  std::map<std::uint32_t, MadeParts> parts_;  ///< by the variable that stands for all of them
  std::vector<std::vector<unsigned>> ipu_tiles_;
  /// Consecutive tiles: the first, and how many.
  using Range = std::pair<unsigned, std::size_t>;
  std::map<std::tuple<Range, std::uint64_t, LinearDivision, std::size_t>, TileMapPtr> linear_maps_;
  std::map<std::pair<Range, std::uint32_t>, std::size_t> starts_;  ///< by layout group
  std::map<Range, std::size_t> next_start_;
};

/// A graph as planning functions see it: a virtual graph has its own tiles. It refers to the graph,
/// so it is made for a call and never kept.
struct GraphScope {
  GraphImpl& impl;
  const System& system;
};

}  // namespace ipujax::engine
