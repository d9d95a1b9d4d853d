#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "poplar/DataStream.hpp"
#include "poplar/DebugContext.hpp"
#include "poplar/ProgramNode.hpp"
#include "poplar/Target.hpp"
#include "poplar/Tensor.hpp"
#include "poplar/TileMap.hpp"
#include "poplar/View.hpp"

namespace poplar {

struct VertexStore;  ///< codelets, compute sets and vertices: Vertices.cpp

struct Variable {
  Type type;
  std::uint64_t elements = 0;
  DebugContext debug;
  TileMapPtr map;
  bool is_constant = false;
  std::vector<std::byte> values;  ///< of a constant, or initial values; empty otherwise
};

/// What a Graph and its virtual graphs share. Tensors point here; it outlives none of them, so a
/// Tensor must not be used after its Graph is gone (as in the SDK). Not thread-safe.
/// How results are rounded to HALF.
struct HalfBehaviour {
  /// What a finite result beyond the largest half becomes. IEEE's infinity is what JAX has on other
  /// backends; an IPU knows the other two.
  enum class Overflow : std::uint8_t { kInfinity, kSaturate, kNan };
  bool stochastic = false;
  Overflow overflow = Overflow::kInfinity;
  friend bool operator==(const HalfBehaviour&, const HalfBehaviour&) = default;
};

class GraphImpl : public std::enable_shared_from_this<GraphImpl> {
 public:
  explicit GraphImpl(Target target);
  ~GraphImpl();

  std::uint32_t addVariable(Type type, std::uint64_t elements, TileMapPtr map,
                            const DebugContext& debug);
  /// A new variable of `shape` spread linearly over all tiles.
  Tensor addLinear(Type type, std::vector<std::size_t> shape, const DebugContext& debug);
  /// The linear mapping of popops' temporaries; cached by size.
  TileMapPtr linearMap(Type type, std::uint64_t elements);

  Target target;
  std::vector<unsigned> all_tiles;
  std::vector<Variable> variables;
  std::vector<DataStream> streams;
  std::vector<std::shared_ptr<ProgramNode>> functions;
  std::map<std::string, Tensor> host_writes;
  std::map<std::string, Tensor> host_reads;
  std::shared_ptr<VertexStore> vertices;
  std::map<std::string, Tensor> hidden;  ///< libraries' own state, e.g. poprand's seeds
  HalfBehaviour half;                    ///< of steps added from now on
  std::int64_t random_streams = 0;       ///< given to steps so far
  unsigned replication_factor = 1;
  /// Written by every program before all else: addReplicationIndexConstant.
  std::vector<Tensor> replication_indices;

 private:
  std::map<std::pair<std::size_t, std::uint64_t>, TileMapPtr> linear_maps_;
};

}  // namespace poplar
