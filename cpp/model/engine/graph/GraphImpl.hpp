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

/// What a variable is for, as far as its maker says; the account of memory counts each use apart,
/// and variables that become one as the greatest of their uses.
enum class VariableUse : std::uint8_t { kTemporary, kAccumulator, kStash };

/// Replicas within one: what a graph of Graph::createReplicatedGraph adds exists `count` times. A
/// variable stands for those of all parts and is mapped as the first one: on the `tiles` tiles from
/// `first_tile` on. Programs are flattened for the parts.
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
  bool is_in_runs = true;  ///< and not of what a host does between runs, which no account has
  bool broadcasts = false;
  unsigned parts = 1;  ///< see StreamSpec
};

/// What a poplar::Graph and its virtual graphs share. Tensors point here; it outlives none of them,
/// so a Tensor must not be used after its Graph is gone (as in the SDK). Not thread-safe.
class GraphImpl : public std::enable_shared_from_this<GraphImpl> {
 public:
  explicit GraphImpl(System system);
  ~GraphImpl();

  std::uint32_t addVariable(ElementType type, std::uint64_t elements, TileMapPtr map,
                            const DebugContext& debug);
  /// A new variable of `shape` spread linearly over all tiles.
  ViewPtr addLinear(ElementType type, std::vector<std::size_t> shape, const DebugContext& debug);
  /// A new variable for elements of `view` on the way: on its IPU, if that is one, or in the host's
  /// memory.
  ViewPtr addTemporary(const View& view, std::vector<std::size_t> shape, const DebugContext& debug);
  /// A new variable in the host's memory.
  ViewPtr addRemote(ElementType type, std::vector<std::size_t> shape, const DebugContext& debug);
  /// Whether the view is of a variable in the host's memory.
  bool isRemote(const View& view) const;
  /// The IPU on which all elements of the variables of a view lie, if it is one.
  std::optional<unsigned> ipuOf(const View& view) const;
  /// The linear mapping over `tiles`, which do not change while the graph lives, from the first
  /// tile of the layout group on.
  TileMapPtr linearMap(std::uint64_t elements, const std::vector<unsigned>& tiles,
                       const LinearDivision& division);
  /// At least 128 bytes a tile, in grains of a vector.
  TileMapPtr linearMap(ElementType type, std::uint64_t elements,
                       const std::vector<unsigned>& tiles);
  /// The variable that the view is all of, in order; null for any other view.
  Variable* variableOfAll(const View& view);
  /// How many parts a view has, or the first of its variables that has some.
  unsigned partsOf(const View& view) const;
  /// The same elements of another part: of the variables that have parts; others stay.
  ViewPtr partOf(const ViewPtr& view, unsigned part);
  /// [parts, ...]: those of all parts, one after another.
  ViewPtr allParts(const ViewPtr& view);
  /// Gives the variables of the parts what the one that stands for them has by now: where it is,
  /// and a constant's values.
  void finishParts();
  void makeParts();  ///< those of all variables, and finishes them

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
  /// Of stochastic rounding in steps added from now on: their key, and its next stream of random
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

  /// Where on `tiles` mappings of the layout group begin that do not need all of them. The first
  /// one of a group goes to the tiles after those that the group before began with.
  std::size_t startOf(const std::vector<unsigned>& tiles, std::uint64_t used);

  struct MadeParts {
    std::vector<std::uint32_t> variables;
    TileMapPtr last_map;  ///< what the parts' mappings were last made of
  };
  const MadeParts& partsOfVariable(std::uint32_t variable);
  const Variable& firstWithParts(const View& view) const;
  View partOf(const View& view, unsigned part);

  std::map<std::uint32_t, MadeParts> parts_;  ///< by the variable that stands for all of them
  std::vector<std::vector<unsigned>> ipu_tiles_;
  /// Tiles that follow each other: the first, and how many.
  using Range = std::pair<unsigned, std::size_t>;
  std::map<std::tuple<Range, std::uint64_t, LinearDivision, std::size_t>, TileMapPtr> linear_maps_;
  std::map<std::pair<Range, std::uint32_t>, std::size_t> starts_;  ///< by layout group
  std::map<Range, std::size_t> next_start_;
};

/// A graph as the functions that plan see it: a virtual graph has tiles of its own. It refers to
/// the graph, so it is made for a call and never kept.
struct GraphScope {
  GraphImpl& impl;
  const System& system;
};

}  // namespace ipujax::engine
